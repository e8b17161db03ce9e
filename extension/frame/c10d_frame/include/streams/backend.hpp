#pragma once

#include "group.hpp"

namespace streams {

// The operations of the frame, with its checks of arguments, on streams. A class for each
// backend: Python knows classes by their C++ names.
template <class Own, class Runner = StreamGroup>
class BackendOf final : public frame::BackendOn<Runner> {
 public:
  using Base = frame::BackendOn<Runner>;
  using Base::Base;

  bool supportsCoalescing() const { return true; } // virtual up to PyTorch 2.15
  // [eager]
  // With init_process_group(device_id=...): has the stream before the first call.
  void eagerConnectSingleDevice(at::Device device) override {
    this->group_.stream(device);
  }
  // [/eager]
  WorkPtr barrier(const c10d::BarrierOptions& opts) override {
    auto device = this->getBoundDeviceId(); // c10d passes no opts.device
    if (!opts.device_ids.empty()) {
      device = at::Device(device::kType, opts.device_ids[0]);
    }
    const c10::OptionalDeviceGuard guard(device);
    return Base::barrier(opts);
  }
  c10::Stream stream(at::Device device) { return this->group_.stream(device); }
};

// The base of the options of a backend, with a constructor that takes a timeout,
// unique_id() and connect().
template <class Own, class Runner = StreamGroup>
struct OptionsOf : frame::OptionsOf<Own>, streams::Options {
  using frame::OptionsOf<Own>::OptionsOf;

  std::unique_ptr<frame::Transport> connect(frame::Place place) const override {
    return std::make_unique<NoTransport>(std::move(place));
  }
  c10::intrusive_ptr<c10d::Backend> start(const StorePtr& store, int rank, int size,
      frame::OptionsPtr options) const override {
    return c10::make_intrusive<BackendOf<Own, Runner>>(
        store, rank, size, std::move(options));
  }
};

// Defines the backend in a module of Python, and registers it for the device.
template <class Own, class Runner = StreamGroup>
auto define(py::module_& module) {
  return frame::define<Own, BackendOf<Own, Runner>>(module, {device::kName})
      .def_readwrite("blocking_wait", &Own::blocking_wait);
}

} // namespace streams
