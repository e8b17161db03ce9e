#pragma once

#include <atomic>

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "driver.hpp"

namespace sim {

constexpr auto kSim = c10::DeviceType::PrivateUse1;
constexpr int64_t kPooled = 32; // streams of a device that PyTorch takes by itself

// The stream of PyTorch that is this queue, and the other way round.
inline c10::Stream handle(const Queue& queue) {
  const auto device = static_cast<c10::DeviceIndex>(queue.device);
  return c10::Stream(c10::Stream::UNSAFE, {kSim, device}, queue.id);
}
inline Queue& queue(const c10::Stream& stream) {
  return driver.stream(stream.device_index(), stream.id());
}

// [guard]
// The current device and the current stream of each device, which are the thread's own;
// and the events. All that PyTorch does with devices in general comes here.
class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  using Device = c10::Device;
  using Stream = c10::Stream;

  c10::DeviceType type() const override { return kSim; }
  c10::DeviceIndex deviceCount() const noexcept override {
    return static_cast<c10::DeviceIndex>(driver.devices());
  }
  Device getDevice() const override { return {kSim, device_}; }
  void setDevice(Device device) const override {
    device_ = static_cast<c10::DeviceIndex>(driver.check_device(device.index()));
  }
  void uncheckedSetDevice(Device device) const noexcept override {
    device_ = device.index();
  }
  Device exchangeDevice(Device device) const override {
    const Device before = getDevice();
    setDevice(device);
    return before;
  }

  Stream getStream(Device device) const override {
    const auto index = index_of(device);
    return Stream(Stream::UNSAFE, {kSim, index}, streams_[index]);
  }
  Stream getDefaultStream(Device device) const override {
    return Stream(Stream::DEFAULT, {kSim, index_of(device)});
  }
  Stream exchangeStream(Stream stream) const override {
    const Stream before = getStream(stream.device());
    streams_[stream.device_index()] = queue(stream).id;
    return before;
  }
  Stream getNewStream(Device device, int /* priority */) const override {
    return handle(driver.new_stream(index_of(device)));
  }
  // One after another, for the callbacks of futures.
  Stream getStreamFromGlobalPool(Device device, bool /* priority */) const override {
    static std::atomic<int64_t> taken{0};
    return handle(driver.stream(index_of(device), -1 - taken++ % kPooled));
  }
  void* getStreamNativeHandle(const Stream stream) const override {
    return static_cast<sim::Stream*>(&queue(stream));
  }
  bool queryStream(const Stream& stream) const override {
    return driver.reached(driver.mark(queue(stream)));
  }
  void synchronizeStream(const Stream& stream) const override {
    driver.wait(driver.mark(queue(stream)));
  }
  void synchronizeDevice(const c10::DeviceIndex device) const override {
    driver.synchronize(index_of({kSim, device}));
  }

  void record(void** event, const Stream& stream, const c10::DeviceIndex /* device */,
      const c10::EventFlag /* timing is always on */) const override {
    if (*event == nullptr) *event = new Event();
    auto& [mark, time] = *static_cast<Event*>(*event);
    time = std::make_shared<std::atomic<Clock::time_point>>();
    const auto note = [time] { *time = Clock::now(); };
    auto& in = queue(stream);
    mark = {&in, driver.launch(in, "", note)};
  }
  void block(void* event, const Stream& stream) const override {
    if (event) driver.wait(queue(stream), static_cast<Event*>(event)->mark);
  }
  bool queryEvent(void* event) const override {
    return !event || driver.reached(static_cast<Event*>(event)->mark);
  }
  void synchronizeEvent(void* event) const override {
    if (event) driver.wait(static_cast<Event*>(event)->mark);
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    delete static_cast<Event*>(event);
  }
  double elapsedTime(void* from, void* to, const c10::DeviceIndex) const override {
    const std::chrono::duration<double, std::milli> time =
        static_cast<Event*>(to)->time->load() - static_cast<Event*>(from)->time->load();
    return time.count();
  }
  void recordDataPtrOnStream(
      const c10::DataPtr& data, const Stream& stream) const override {
    c10::getDeviceAllocator(kSim)->recordStream(data, stream);
  }

 private:
  struct Event {
    Mark mark;
    std::shared_ptr<std::atomic<Clock::time_point>> time;
  };

  static c10::DeviceIndex index_of(Device device) {
    const int index = device.has_index() ? device.index() : device_;
    return static_cast<c10::DeviceIndex>(driver.check_device(index));
  }

  static inline thread_local c10::DeviceIndex device_ = 0;
  static inline thread_local std::map<int, int64_t> streams_; // others have stream 0
};
// [/guard]

inline Queue& current_queue(int device) {
  return queue(Guard().getStream({kSim, static_cast<c10::DeviceIndex>(device)}));
}

} // namespace sim
