#include <pybind11/chrono.h>
#include <torch/csrc/utils/pybind.h>

#include "backend.hpp"

namespace {

using shm_collectives::BackendShm;
using shm_collectives::OptionsShm;
using OptionsPtr = c10::intrusive_ptr<OptionsShm>;

// [create]
// What init_process_group("shm") calls in each rank. It waits for the other ranks
// without the interpreter's lock, so that other threads of this rank go on.
c10::intrusive_ptr<c10d::Backend> create(const c10d::DistributedBackendOptions& group,
    const std::optional<OptionsPtr>& given) {
  // A copy, because the caller may use the same options for another group.
  auto options = given ? c10::make_intrusive<OptionsShm>(**given)
                       : c10::make_intrusive<OptionsShm>();
  // The timeout in the options counts if the caller has set it.
  if (options->timeout == kBackendDefaultTimeout) {
    options->timeout =
        std::chrono::duration_cast<std::chrono::milliseconds>(group.timeout);
  }
  options->group_name = group.group_id;
  options->global_ranks_in_group.assign(
      group.global_ranks_in_group.begin(), group.global_ranks_in_group.end());
  const py::gil_scoped_release without_gil;
  return c10::make_intrusive<BackendShm>(
      group.store, group.group_rank, group.group_size, std::move(options));
}
// [/create]

// Tells torch.distributed that there is a backend "shm", for which devices, and
// how to create it. Doing so a second time changes nothing.
void register_with_torch() {
  const auto backend_class = py::module_::import("torch.distributed").attr("Backend");
  if (backend_class.attr("backend_list").contains("shm")) return;
  backend_class.attr("register_backend")("shm", py::cpp_function(&create),
      py::arg("extended_api") = true,
      py::arg("devices") = std::vector<std::string>{"cpu"});
  // A thread that calls Python after its end would take the process with it.
  py::module_::import("atexit").attr("register")(
      py::cpp_function(&BackendShm::close_all));
}

} // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.doc() = "The shm c10d backend, compiled for one release of PyTorch.";
  // The base class of the options is PyTorch's, and known once it is imported.
  py::module_::import("torch.distributed");
  py::class_<OptionsShm, c10d::Backend::Options, OptionsPtr>(module, "Options")
      .def(py::init<std::chrono::milliseconds>(),
          py::arg("timeout") = kBackendDefaultTimeout)
      .def_readwrite("slot_bytes", &OptionsShm::slot_bytes)
      .def_readwrite("yield_for", &OptionsShm::yield_for);
  // [own-class]
  // A class of its own, for what Python calls by name. Where init_process_group got a
  // device_id, new_group calls perform_nocolor_split on the ranks outside the new
  // group, because NCCL splits a communicator on all of its ranks. Here they have
  // nothing to do.
  py::class_<BackendShm, c10d::Backend, c10::intrusive_ptr<BackendShm>>(
      module, "Backend")
      .def("perform_nocolor_split", [](BackendShm&, const py::object& /* device */) {})
      // the chosen time
      .def_property_readonly("yield_for", &BackendShm::yield_for);
  // [/own-class]
  module.def("register", &register_with_torch, "Register the backend \"shm\".");
  register_with_torch();
}
