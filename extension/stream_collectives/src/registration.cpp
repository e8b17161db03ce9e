#include "group.hpp"

namespace stream_collectives {

// The operations of the frame, with its checks of arguments, on streams.
class BackendSimccl final : public frame::BackendOn<StreamGroup> {
 public:
  using BackendOn::BackendOn;

  bool supportsCoalescing() const override { return true; }
  // With init_process_group(device_id=...): has the stream before the first call.
  void eagerConnectSingleDevice(at::Device device) override { group_.stream(device); }
  WorkPtr barrier(const c10d::BarrierOptions& opts) override {
    const c10::OptionalDeviceGuard guard(opts.device);
    return BackendOn::barrier(opts);
  }
  std::tuple<int64_t, int64_t, int64_t> stream(at::Device device) {
    const auto stream = group_.stream(device).pack3();
    return {stream.stream_id, stream.device_index, int64_t(stream.device_type)};
  }
};

BackendPtr OptionsSimccl::start(
    const StorePtr& store, int rank, int size, frame::OptionsPtr options) const {
  return c10::make_intrusive<BackendSimccl>(store, rank, size, std::move(options));
}

// The library is a backend of Python's registry. It may meet in the same store as one
// for the CPU of the same name.
BackendPtr OptionsSimccl::connect(const StorePtr& store, int rank, int size) const {
  TORCH_CHECK_VALUE(broken.empty() || std::ranges::count(kRules, broken),
      "Backend simccl: there is no rule \"", broken, "\"");
  const StorePtr inside = c10::make_intrusive<c10d::PrefixStore>("simccl", store);
  const py::gil_scoped_acquire gil;
  return py::module_::import("stream_collectives")
      .attr("connect")(
          library, inside, rank, size, timeout, group_name, global_ranks_in_group)
      .cast<BackendPtr>();
}

} // namespace stream_collectives

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  using namespace stream_collectives;
  module.doc() = "The simccl c10d backend, compiled for one release of PyTorch.";
  py::module_::import("torch.distributed"); // has the base classes
  py::class_<OptionsSimccl, c10d::Backend::Options, OptionsPtr>(module, "Options")
      .def(py::init<milliseconds>(), py::arg("timeout") = kBackendDefaultTimeout)
      .def_readwrite("library", &OptionsSimccl::library)
      .def_readwrite("blocking_wait", &OptionsSimccl::blocking_wait)
      .def_readwrite("broken", &OptionsSimccl::broken);
  py::class_<BackendSimccl, c10d::Backend, c10::intrusive_ptr<BackendSimccl>>(
      module, "Backend")
      // A split concerns the ranks of the new group only: see frame/registration.hpp.
      .def("perform_nocolor_split", [](BackendSimccl&, const py::object&) {})
      .def("communication_stream", &BackendSimccl::stream);
  module.attr("RULES") = kRules;
  module.def("register", [] { frame::register_backend<OptionsSimccl>({"sim"}); });
  frame::register_backend<OptionsSimccl>({"sim"});
}
