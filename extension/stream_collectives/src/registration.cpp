#include "group.hpp"

namespace stream_collectives {

// The operations of the frame, with its checks of arguments, on streams.
class BackendSimccl final : public frame::BackendOn<StreamGroup> {
 public:
  using BackendOn::BackendOn;

  bool supportsCoalescing() const override { return true; }
  // [eager]
  // With init_process_group(device_id=...): has the stream before the first call.
  void eagerConnectSingleDevice(at::Device device) override { group_.stream(device); }
  // [/eager]
  WorkPtr barrier(const c10d::BarrierOptions& opts) override {
    auto device = getBoundDeviceId(); // c10d passes no opts.device
    if (!opts.device_ids.empty()) device = at::Device(kDevice, opts.device_ids[0]);
    const c10::OptionalDeviceGuard guard(device);
    return BackendOn::barrier(opts);
  }
  c10::Stream stream(at::Device device) { return group_.stream(device); }
};

BackendPtr OptionsSimccl::start(
    const StorePtr& store, int rank, int size, frame::OptionsPtr options) const {
  return c10::make_intrusive<BackendSimccl>(store, rank, size, std::move(options));
}

// [connect]
// The library is a backend of Python's registry. A split gives it the store of
// the CPU's gloo, so its keys get a prefix.
BackendPtr OptionsSimccl::connect(const StorePtr& store, int rank, int size) const {
  const StorePtr inside = c10::make_intrusive<c10d::PrefixStore>("simccl", store);
  const py::gil_scoped_acquire gil;
  return py::module_::import("stream_collectives")
      .attr("connect")(*this, inside, rank, size)
      .cast<BackendPtr>();
}
// [/connect]

} // namespace stream_collectives

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  using namespace stream_collectives;
  module.doc() = "The simccl c10d backend, compiled for one release of PyTorch.";
  frame::define<OptionsSimccl, BackendSimccl>(module, {"sim"})
      .def_readwrite("library", &OptionsSimccl::library)
      .def_readwrite("blocking_wait", &OptionsSimccl::blocking_wait)
      .def_readwrite("broken", &OptionsSimccl::broken);
  module.def("communication_stream", [](BackendSimccl& backend, at::Device device) {
    const auto stream = backend.stream(device).pack3();
    return std::tuple(
        stream.stream_id, int(stream.device_index), int(stream.device_type));
  });
}
