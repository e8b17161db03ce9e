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
  using Stats = c10::CachingDeviceAllocator::DeviceStats;

  void* allocate(size_t bytes, int device, int64_t stream) {
    Driver::get().check_process();
    const std::lock_guard lock(mutex_);
    std::erase_if(late_, [this](const Late& late) {
      if (!std::ranges::all_of(late.marks, is_reached)) return false;
      make_free(late.data, late.block);
      return true;
    });
    const size_t size = (bytes + kRounding - 1) / kRounding * kRounding;
    auto& free = free_[{device, stream, size}];
    auto& stats = stats_[device];
    char* data = nullptr;
    if (free.empty()) {
      data = static_cast<char*>(std::aligned_alloc(kRounding, size));
      TORCH_CHECK_WITH(OutOfMemoryError, data, "sim: no memory for ", size, " bytes");
      stats.segment[0].increase(1);
      stats.reserved_bytes[0].increase(size);
    } else {
      data = free.back(); // the last one that became free
      free.pop_back();
    }
    used_[data] = {size, bytes, device, stream, {}};
    count(used_[data], &c10::CachingAllocator::Stat::increase);
    return data;
  }

  void release(void* data) {
    if (Driver::get().forked()) return; // the parent's
    const std::lock_guard lock(mutex_);
    const auto entry = used_.extract(static_cast<char*>(data));
    const Block& block = entry.mapped();
    count(block, &c10::CachingAllocator::Stat::decrease);
    if (block.others.empty()) return make_free(entry.key(), block);
    late_.push_back({entry.key(), block, {}});
    for (auto* other : block.others) {
      late_.back().marks.push_back(Driver::get().mark(*other));
    }
  }

  // Another stream than the one that it belongs to uses the memory, up to now.
  void record(const void* data, Queue& queue) {
    const std::lock_guard lock(mutex_);
    const auto entry = find(data);
    if (entry == used_.end()) return;
    auto& [size, bytes, device, stream, others] = entry->second;
    if (queue.device != device || queue.id != stream) others.insert(&queue);
  }

  // Whether the address is inside of memory that is in use.
  bool owns(const void* data) {
    const std::lock_guard lock(mutex_);
    return find(data) != used_.end();
  }

  void give_back(int device) { // when no stream can use it any more
    for (const Mark mark : Driver::get().marks(device)) Driver::get().wait(mark);
    const std::lock_guard lock(mutex_);
    for (auto& [key, free] : free_) {
      if (std::get<0>(key) != device) continue;
      for (char* data : std::exchange(free, {})) {
        std::free(data);
        stats_[device].segment[0].decrease(1);
        stats_[device].reserved_bytes[0].decrease(std::get<2>(key));
      }
    }
  }

  template <class Function>
  auto with_stats(int device, Function function) {
    const std::lock_guard lock(mutex_);
    return function(stats_[Driver::get().check_device(device)]);
  }

 private:
  static constexpr size_t kRounding = 512;

  struct Block {
    size_t size, bytes;
    int device;
    int64_t stream;
    std::set<Queue*> others; // streams that have used it, too
  };
  struct Late {
    char* data;
    Block block;
    std::vector<Mark> marks; // where the other streams no longer use it
  };

  static bool is_reached(Mark mark) { return Driver::get().reached(mark); }
  void make_free(char* data, const Block& block) {
    free_[{block.device, block.stream, block.size}].push_back(data);
  }
  std::map<char*, Block>::iterator find(const void* data) {
    auto entry = used_.upper_bound(static_cast<char*>(const_cast<void*>(data)));
    if (entry == used_.begin()) return used_.end();
    --entry;
    return data < entry->first + entry->second.size ? entry : used_.end();
  }
  void count(const Block& block, void (c10::CachingAllocator::Stat::*change)(size_t)) {
    auto& stats = stats_[block.device];
    for (auto* number : {&stats.allocation[0], &stats.active[0]}) (number->*change)(1);
    for (auto* sum : {&stats.allocated_bytes[0], &stats.active_bytes[0]}) {
      (sum->*change)(block.size);
    }
    (stats.requested_bytes[0].*change)(block.bytes);
  }

  std::mutex mutex_; // taken before the driver's
  std::map<char*, Block> used_;
  std::map<std::tuple<int, int64_t, size_t>, std::vector<char*>> free_;
  std::vector<Late> late_;
  std::map<int, Stats> stats_;
};
// [/pool]

// Never destroyed: static objects of others may own tensors.
inline Pool& device_pool() {
  static auto& pool = *new Pool();
  return pool;
}
inline Pool& pinned_pool() {
  static auto& pool = *new Pool();
  return pool;
}

// The memory of the device, which belongs to the stream that is current now.
class Allocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    const c10::Device device = Guard().getDevice();
    const auto stream = Guard().getStream(device).id();
    void* const data =
        bytes ? device_pool().allocate(bytes, device.index(), stream) : nullptr;
    return {data, data, &release, device};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    auto& queue = current_queue(Guard().getDevice().index());
    queue.launch("copy", [=] { std::memcpy(to, from, bytes); }, false);
  }

  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {
    for (int i = 0; i < Driver::get().devices(); ++i) device_pool().give_back(i);
  }
  void recordStream(const c10::DataPtr& data, c10::Stream stream) override {
    device_pool().record(data.get(), queue(stream));
  }
  Pool::Stats getDeviceStats(c10::DeviceIndex device) override {
    return device_pool().with_stats(device, [](auto& stats) { return stats; });
  }
  void resetAccumulatedStats(c10::DeviceIndex device) override {
    reset(device, &c10::CachingAllocator::Stat::reset_accumulated);
  }
  void resetPeakStats(c10::DeviceIndex device) override {
    reset(device, &c10::CachingAllocator::Stat::reset_peak);
  }

 private:
  static void release(void* data) {
    if (data) device_pool().release(data);
  }
  static void reset(int device, void (c10::CachingAllocator::Stat::*change)()) {
    device_pool().with_stats(device, [change](auto& stats) {
      for (auto* number :
          {&stats.allocation, &stats.active, &stats.segment, &stats.allocated_bytes,
              &stats.active_bytes, &stats.reserved_bytes, &stats.requested_bytes}) {
        ((*number)[0].*change)();
      }
    });
  }
};

// Memory of the host from which streams copy while the host goes on. It is free again
// when they have done so.
class PinnedAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    void* const data = pinned_pool().allocate(std::max<size_t>(bytes, 1), 0, -1);
    return {data, data, &release, c10::kCPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

 private:
  static void release(void* data) { pinned_pool().release(data); }
};

inline c10::DeviceAllocator& allocator() {
  static auto& allocator = *new Allocator();
  return allocator;
}

inline void Guard::recordDataPtrOnStream(
    const c10::DataPtr& data, const Stream& stream) const {
  allocator().recordStream(data, stream);
}

} // namespace sim
