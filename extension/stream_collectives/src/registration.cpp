#include "backend.hpp"

namespace stream_collectives {

// The inner backend is one of Python's: it is made as init_process_group would make it.
BackendPtr OptionsSimccl::start(
    const StorePtr& store, int rank, int size, frame::OptionsPtr options) const {
  const auto own = c10::dynamic_intrusive_pointer_cast<OptionsSimccl>(options);
  TORCH_CHECK_VALUE(
      own->broken.empty() || std::ranges::find(kRules, own->broken) != kRules.end(),
      "Backend simccl: there is no rule \"", own->broken, "\"");
  // It may meet in the same store as a backend for the CPU of the same name.
  const StorePtr inside = c10::make_intrusive<c10d::PrefixStore>("simccl", store);
  BackendPtr inner;
  {
    const py::gil_scoped_acquire gil;
    const auto make = py::module_::import("stream_collectives").attr("inner_backend");
    inner = make(own->inner, inside, rank, size, own->timeout, own->group_name,
        own->global_ranks_in_group)
                .cast<BackendPtr>();
  }
  return c10::make_intrusive<BackendSimccl>(inside, inner, rank, size, own);
}

} // namespace stream_collectives

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  using namespace stream_collectives;
  module.doc() = "The simccl c10d backend, compiled for one release of PyTorch.";
  py::module_::import("torch.distributed"); // has the base classes
  py::class_<OptionsSimccl, c10d::Backend::Options, OptionsPtr>(module, "Options")
      .def(py::init<milliseconds>(), py::arg("timeout") = kBackendDefaultTimeout)
      .def_readwrite("inner", &OptionsSimccl::inner)
      .def_readwrite("blocking_wait", &OptionsSimccl::blocking_wait)
      .def_readwrite("broken", &OptionsSimccl::broken);
  module.attr("rules") = kRules;
  module.def("register", [] { frame::register_backend<OptionsSimccl>({"sim"}); });
  frame::register_backend<OptionsSimccl>({"sim"});
  py::class_<BackendSimccl, c10d::Backend, c10::intrusive_ptr<BackendSimccl>>(
      module, "Backend")
      .def("perform_nocolor_split", [](BackendSimccl&, const py::object&) {})
      .def(
          "communication_stream", [](BackendSimccl& backend, const at::Device& device) {
            const auto stream = backend.stream(device).pack3();
            return std::tuple(
                stream.stream_id, stream.device_index, int(stream.device_type));
          });
}
