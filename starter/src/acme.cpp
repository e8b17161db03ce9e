#include "acme.hpp"

#include <utility>

#include <pybind11/chrono.h>
#include <torch/csrc/utils/pybind.h>

namespace acme_collectives {

namespace {

// A future with tensors of an accelerator must know their devices. Code that
// waits for the future then waits for the right streams.
std::vector<c10::Device> accelerators_of(const std::vector<at::Tensor>& tensors) {
  std::vector<c10::Device> devices;
  for (const auto& tensor : tensors) {
    if (!tensor.is_cpu()) {
      devices.push_back(tensor.device());
    }
  }
  return devices;
}

} // namespace

WorkAcme::WorkAcme(c10d::OpType op_type, int rank, std::vector<at::Tensor> outputs)
    : c10d::Work(rank, op_type),
      future_(c10::make_intrusive<c10::ivalue::Future>(
          c10::ListType::create(c10::TensorType::get()), accelerators_of(outputs))) {
  future_->markCompleted(c10::IValue(std::move(outputs)));
}

bool WorkAcme::isCompleted() { return future_->completed(); }

bool WorkAcme::isSuccess() const {
  return future_->completed() && !future_->hasError();
}

// The timeout has no use: the future is complete since the constructor.
bool WorkAcme::wait(std::chrono::milliseconds /* timeout */) {
  future_->waitAndThrow();
  return true;
}

c10::intrusive_ptr<c10::ivalue::Future> WorkAcme::getFuture() { return future_; }

BackendAcme::BackendAcme(int rank, int size) : c10d::Backend(rank, size) {}

const std::string BackendAcme::getBackendName() const { return "acme"; }

// Define the first operation here, BackendAcme::allreduce. It calls check_open,
// checks its arguments, moves the data, and returns a WorkAcme with its outputs.
// That WorkAcme is complete at once, so the outputs must have their values:
// https://SITE/tutorial/step-1-subclass-backend.html
// To return earlier, complete the future of the WorkAcme in a thread and not in
// its constructor, and let wait() keep its timeout:
// https://SITE/communicate/overlap-and-futures.html

void BackendAcme::shutdown() { closed_ = true; }

void BackendAcme::abort() { closed_ = true; }

void BackendAcme::check_open(const char* operation) const {
  TORCH_CHECK(!closed_, "Backend acme was shut down and cannot run ", operation);
}

// Let the ranks meet here. While this one waits for others, release Python's
// interpreter lock (py::gil_scoped_release). The store may have keys of an
// earlier group: https://SITE/communicate/meet-the-other-ranks.html
// That page also has a form of this function that gets the group's name and options.
c10::intrusive_ptr<c10d::Backend> create_backend(
    const c10::intrusive_ptr<c10d::Store>& /* store */, int rank, int size,
    const std::chrono::milliseconds& /* timeout */) {
  return c10::make_intrusive<BackendAcme>(rank, size);
}

} // namespace acme_collectives

namespace {

// Registers the backend "acme" with its devices and the function that creates
// it. A second call changes nothing.
void register_with_torch() {
  const auto backend_class = py::module_::import("torch.distributed").attr("Backend");
  if (backend_class.attr("backend_list").contains("acme")) {
    return;
  }
  constexpr py::call_guard<py::gil_scoped_release> without_lock{};
  backend_class.attr("register_backend")("acme",
      py::cpp_function(&acme_collectives::create_backend, without_lock),
      py::arg("devices") = std::vector<std::string>{"cpu"});
}

} // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.doc() = "The c10d backend acme, compiled for one release of PyTorch.";
  module.def("register", &register_with_torch, "Register the backend \"acme\".");
  register_with_torch();
}
