#pragma once

#include <c10/core/CachingDeviceAllocator.h>

#include "guard.hpp"

namespace sim {

// [pool]
// Memory that is free is used again at once, by the stream that it belongs to: what the
// stream still runs then comes before what it gets next, so nobody needs to wait. Other
// streams that use the memory must be named, or they read what the next owner writes.
class Pool {
 public:
  using Stat = c10::CachingAllocator::Stat;
  using Stats = c10::CachingDeviceAllocator::DeviceStats;

  void* allocate(size_t bytes, int device, int64_t stream) {
    driver.check_process();
    const std::lock_guard lock(mutex_);
    free_late();
    const size_t size = (bytes + kRounding - 1) / kRounding * kRounding;
    auto& free = free_[{device, stream, size}];
    auto& stats = stats_[device];
    if (free.empty()) {
      auto* const fresh = static_cast<char*>(std::aligned_alloc(kRounding, size));
      TORCH_CHECK_WITH(OutOfMemoryError, fresh, "sim: no memory for ", size, " bytes");
      free.push_back(fresh);
      stats.segment[0].increase(1);
      stats.reserved_bytes[0].increase(size);
    }
    char* const data = free.back(); // the last one that became free
    free.pop_back();
    used_[data] = {{device, stream, size}, {}};
    stats.allocation[0].increase(1);
    stats.allocated_bytes[0].increase(size);
    return data;
  }

  void release(void* data) {
    if (driver.forked()) return; // the parent's
    const std::lock_guard lock(mutex_);
    const auto entry = used_.extract(static_cast<char*>(data));
    const auto& [device, stream, size] = entry.mapped().bin;
    stats_[device].allocation[0].decrease(1);
    stats_[device].allocated_bytes[0].decrease(size);
    std::vector<Mark> marks;
    for (auto* other : entry.mapped().others) marks.push_back(driver.mark(*other));
    if (marks.empty()) return free_[entry.mapped().bin].push_back(entry.key());
    late_.emplace_back(entry.key(), entry.mapped(), marks);
  }

  // Notes another stream that uses the memory: what it gets until the release counts.
  void record(const void* data, Queue& queue) {
    const std::lock_guard lock(mutex_);
    const auto entry = find(data);
    if (entry == used_.end()) return;
    const auto [device, stream, size] = entry->second.bin;
    if (queue.device != device || queue.id != stream)
      entry->second.others.insert(&queue);
  }

  // Whether the address is inside of memory that is in use.
  bool owns(const void* data) {
    const std::lock_guard lock(mutex_);
    return find(data) != used_.end();
  }

  void give_back() {
    synchronize(); // so that no stream uses late memory any more
    std::vector<char*> unused;
    {
      const std::lock_guard lock(mutex_);
      free_late();
      for (auto& [bin, free] : free_) {
        auto& stats = stats_[std::get<0>(bin)];
        stats.segment[0].decrease(free.size());
        stats.reserved_bytes[0].decrease(free.size() * std::get<2>(bin));
        for (char* data : std::exchange(free, {})) unused.push_back(data);
      }
    }
    // Another thread may have freed more after the first wait, and the streams may still use
    // it.
    synchronize();
    for (char* data : unused) std::free(data);
  }

  Stats stats(int device) {
    const std::lock_guard lock(mutex_);
    return stats_[driver.check_device(device)];
  }
  void reset(int device, void (Stat::*reset)()) {
    const std::lock_guard lock(mutex_);
    auto& all = stats_[driver.check_device(device)];
    for (auto* const one : {&all.allocation, &all.allocated_bytes})
      ((*one)[0].*reset)();
    for (auto* const one : {&all.segment, &all.reserved_bytes}) ((*one)[0].*reset)();
  }

 private:
  static constexpr size_t kRounding = 512;

  using Bin = std::tuple<int, int64_t, size_t>; // device, stream, size
  struct Block {
    Bin bin;
    std::set<Queue*> others; // streams that have used it, too
  };
  std::map<char*, Block>::iterator find(const void* data) {
    auto entry = used_.upper_bound(static_cast<char*>(const_cast<void*>(data)));
    if (entry == used_.begin()) return used_.end();
    --entry;
    return data < entry->first + std::get<2>(entry->second.bin) ? entry : used_.end();
  }
  void free_late() {
    std::erase_if(late_, [this](const auto& late) {
      const auto& [data, block, marks] = late;
      const auto reached = [](Mark mark) { return driver.reached(mark); };
      const bool unused = std::ranges::all_of(marks, reached);
      auto& free = free_[block.bin];
      if (unused) free.insert(free.begin(), data); // the next is what went just now
      return unused;
    });
  }
  static void synchronize() {
    for (int i = 0; i < driver.devices(); ++i) driver.synchronize(i);
  }
  std::mutex mutex_; // taken before the driver's
  std::map<char*, Block> used_;
  std::map<Bin, std::vector<char*>> free_;
  std::vector<std::tuple<char*, Block, std::vector<Mark>>> late_; // others use it
  std::map<int, Stats> stats_;
};
// [/pool]

// Never destroyed: static objects of others may own tensors.
inline Pool &device_pool = *new Pool(), &pinned_pool = *new Pool();

// The memory of the device, which belongs to the stream that is current now.
class Allocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    const c10::Device device = Guard().getDevice();
    const auto stream = Guard().getStream(device).id();
    void* const data =
        bytes ? device_pool.allocate(bytes, device.index(), stream) : nullptr;
    return {data, data, &release, device};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    auto& queue = current_queue(Guard().getDevice().index());
    queue.launch("copy", [=] { std::memcpy(to, from, bytes); }, false);
  }

  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override { device_pool.give_back(); }
  void recordStream(const c10::DataPtr& data, c10::Stream stream) override {
    device_pool.record(data.get(), queue(stream));
  }
  Pool::Stats getDeviceStats(c10::DeviceIndex device) override {
    return device_pool.stats(device);
  }
  void resetAccumulatedStats(c10::DeviceIndex device) override {
    device_pool.reset(device, &Pool::Stat::reset_accumulated);
  }
  void resetPeakStats(c10::DeviceIndex device) override {
    device_pool.reset(device, &Pool::Stat::reset_peak);
  }

 private:
  static void release(void* data) {
    if (data) device_pool.release(data);
  }
};

// Memory of the host from which streams copy while the host goes on. It is free again
// when they have done so.
class PinnedAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    void* const data = pinned_pool.allocate(std::max<size_t>(bytes, 1), kHost, 0);
    return {data, data, &release, c10::kCPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

 private:
  static constexpr int kHost = -1; // no stream owns the memory, so each one is noted
  static void release(void* data) { pinned_pool.release(data); }
};

inline Allocator& allocator = *new Allocator();

} // namespace sim
