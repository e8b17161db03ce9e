#pragma once

// The device of the tests of streams: the CPU, with a number. Its streams run nothing: all
// events that are recorded end when the test says so.

#include <atomic>

#include <c10/core/StreamGuard.h>

namespace device {

constexpr auto kType = c10::DeviceType::CPU;
constexpr const char* kName = "cpu";
using StreamGuard = c10::StreamGuard;

inline std::atomic<bool> is_busy{false}, has_error{false};

struct Guard {
  explicit Guard(c10::DeviceType) {}
  c10::Device getDevice() const { return {kType, 0}; }
  c10::Stream getStream(c10::Device device) const {
    return c10::Stream(c10::Stream::DEFAULT, device);
  }
  c10::Stream getNewStream(c10::Device device) const { return getStream(device); }
};

class Event {
 public:
  explicit Event(c10::DeviceType) {}
  void record(const c10::Stream&) { is_recorded_ = true; }
  void block(const c10::Stream&) const {}
  void synchronize() const {}
  bool query() const { // as those of CUDA, one that is not recorded has ended
    TORCH_CHECK(!has_error, "the device has an error");
    return !is_recorded_ || !is_busy;
  }

 private:
  std::atomic<bool> is_recorded_{false};
};

} // namespace device
