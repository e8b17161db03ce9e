#pragma once

#include <pybind11/chrono.h>
#include <torch/csrc/utils/pybind.h>

#include "backend.hpp"

namespace frame {

// The backend whose options are of the class `Own`. Each has a C++ class of its own,
// because Python knows classes by their C++ names, and a process may load several.
template <class Own>
class BackendOf final : public BackendOn<Group> {
 public:
  using BackendOn::BackendOn;
};

// The base of the options of a backend: `struct OptionsAcme : frame::OptionsOf<...>`,
// with a constructor that takes a timeout, and connect().
template <class Own>
struct OptionsOf : Options {
  using Options::Options;

  OptionsPtr copy() const override {
    const std::lock_guard lock(mutex_);
    return c10::make_intrusive<Own>(self());
  }
  c10::intrusive_ptr<c10d::Backend::Options> clone() const { // virtual from 2.14 on
    return copy();
  }
  c10::intrusive_ptr<c10d::Backend> start(
      const StorePtr& store, int rank, int size, OptionsPtr options) const override {
    return c10::make_intrusive<BackendOf<Own>>(store, rank, size, std::move(options));
  }

 private:
  const Own& self() const { return static_cast<const Own&>(*this); }
};

// [create]
// Called by init_process_group in each rank. It waits for the other ranks without the
// interpreter's lock, so that other threads of this rank go on.
template <class Own>
c10::intrusive_ptr<c10d::Backend> create(const c10d::DistributedBackendOptions& group,
    const std::optional<c10::intrusive_ptr<Own>>& given) {
  // A copy, because the caller may use the same options for another group.
  const OptionsPtr options = (given ? *given : c10::make_intrusive<Own>())->copy();
  const auto passed = std::chrono::duration_cast<milliseconds>(group.timeout);
  options->timeout = timeout_of_group(options->timeout, passed);
  options->group_name = group.group_id;
  options->global_ranks_in_group.assign(
      group.global_ranks_in_group.begin(), group.global_ranks_in_group.end());
  const py::gil_scoped_release without_gil;
  return options->start(group.store, group.group_rank, group.group_size, options);
}
// [/create]

template <class Own>
void register_backend(const std::vector<std::string>& devices) {
  const std::string name = c10::make_intrusive<Own>()->backend;
  const auto backends = py::module_::import("torch.distributed").attr("Backend");
  if (backends.attr("backend_list").contains(name)) return;
  backends.attr("register_backend")(name, py::cpp_function(&create<Own>),
      py::arg("extended_api") = true, py::arg("devices") = devices);
  // A thread that calls Python after its end would take the process with it.
  py::module_::import("atexit").attr("register")(py::cpp_function(&Group::close_all));
}

// Defines the classes of a backend in a module, and registers it for these devices.
// Returns the class Options, for the properties that the backend adds.
template <class Own, class Class = BackendOf<Own>>
auto define(py::module_& module, const std::vector<std::string>& devices) {
  // The base class of the options is PyTorch's, and known once it is imported.
  py::module_::import("torch.distributed");
  py::class_<Own, c10d::Backend::Options, c10::intrusive_ptr<Own>> options(
      module, "Options");
  options.def(py::init<milliseconds>(), py::arg("timeout") = kBackendDefaultTimeout);
  // Where init_process_group got a device_id, new_group calls perform_nocolor_split on
  // the ranks outside of the new group, because NCCL splits a communicator on all of its
  // ranks. Here they have nothing to do: create() ignores split_from, and splits nothing.
  py::class_<Class, c10d::Backend, c10::intrusive_ptr<Class>> backend(
      module, "Backend");
  backend.def("perform_nocolor_split", [](Class&, const py::object& /* device */) {});
  // Before 2.14, split_group copies the options of the parent in Python.
  backend.def_property_readonly(
      "options", [](Class& self) { return self.getBackendOptions(); });
  options.def(
      "__deepcopy__", [](const Own& self, const py::dict&) { return self.copy(); });
  module.def("register", [devices] { register_backend<Own>(devices); });
  register_backend<Own>(devices);
  return options;
}

} // namespace frame
