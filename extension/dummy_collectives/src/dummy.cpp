// [includes]
#include "dummy.hpp"

#include <utility>

#include <pybind11/chrono.h>
#include <torch/csrc/utils/pybind.h>
// [/includes]

namespace dummy_collectives {

namespace {

// [helpers]
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

// The whole "communication" of this backend. It must be hidden from autograd:
// a collective may write into a leaf tensor that requires a gradient.
void set_to_zero(const std::vector<at::Tensor>& tensors) {
  const at::NoGradGuard no_grad;
  for (const auto& tensor : tensors) {
    tensor.zero_();
  }
}
// [/helpers]

} // namespace

// [work]
WorkDummy::WorkDummy(c10d::OpType op_type, int rank, std::vector<at::Tensor> outputs)
    : c10d::Work(rank, op_type),
      future_(c10::make_intrusive<c10::ivalue::Future>(
          c10::ListType::create(c10::TensorType::get()), accelerators_of(outputs))) {
  future_->markCompleted(c10::IValue(std::move(outputs)));
}

bool WorkDummy::isCompleted() { return future_->completed(); }

bool WorkDummy::isSuccess() const {
  return future_->completed() && !future_->hasError();
}

// The timeout has no use: the future is complete since the constructor.
bool WorkDummy::wait(std::chrono::milliseconds /* timeout */) {
  future_->waitAndThrow();
  return true;
}

c10::intrusive_ptr<c10::ivalue::Future> WorkDummy::getFuture() { return future_; }
// [/work]

// [backend-basics]
BackendDummy::BackendDummy(int rank, int size) : c10d::Backend(rank, size) {}

const std::string BackendDummy::getBackendName() const { return "dummy"; }
// [/backend-basics]

// [allreduce]
c10::intrusive_ptr<c10d::Work> BackendDummy::allreduce(
    std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions& /* opts */) {
  check_open("allreduce");
  set_to_zero(tensors);
  return c10::make_intrusive<WorkDummy>(c10d::OpType::ALLREDUCE, getRank(), tensors);
}
// [/allreduce]

// [allgather]
c10::intrusive_ptr<c10d::Work> BackendDummy::allgather(
    std::vector<std::vector<at::Tensor>>& output_lists, std::vector<at::Tensor>& inputs,
    const c10d::AllgatherOptions& /* opts */) {
  check_open("allgather");
  TORCH_CHECK(output_lists.size() == 1 && inputs.size() == 1,
      "Backend dummy: allgather takes one input tensor and one list of "
      "output tensors");
  auto& outputs = output_lists[0];
  TORCH_CHECK(outputs.size() == static_cast<size_t>(getSize()),
      "Backend dummy: allgather needs one output tensor per rank (", getSize(),
      "), got ", outputs.size());
  set_to_zero(outputs);
  return c10::make_intrusive<WorkDummy>(c10d::OpType::ALLGATHER, getRank(), outputs);
}
// [/allgather]

// [shutdown]
void BackendDummy::shutdown() { closed_ = true; }

void BackendDummy::abort() { closed_ = true; }

void BackendDummy::check_open(const char* operation) const {
  TORCH_CHECK(!closed_, "Backend dummy was shut down and cannot run ", operation);
}
// [/shutdown]

// [create]
c10::intrusive_ptr<c10d::Backend> create_backend(
    const c10::intrusive_ptr<c10d::Store>& /* store */, int rank, int size,
    const std::chrono::milliseconds& /* timeout */) {
  return c10::make_intrusive<BackendDummy>(rank, size);
}
// [/create]

} // namespace dummy_collectives

// [register]
namespace {

// Registers the backend "dummy" with its devices and the function that creates
// it. A second call changes nothing.
void register_with_torch() {
  const auto backend_class = py::module_::import("torch.distributed").attr("Backend");
  if (backend_class.attr("backend_list").contains("dummy")) {
    return;
  }
  constexpr py::call_guard<py::gil_scoped_release> without_lock{};
  backend_class.attr("register_backend")("dummy",
      py::cpp_function(&dummy_collectives::create_backend, without_lock),
      py::arg("devices") = std::vector<std::string>{"cpu", "cuda"});
}

} // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.doc() = "The dummy c10d backend, compiled for one release of PyTorch.";
  module.def("register", &register_with_torch, "Register the backend \"dummy\".");
  register_with_torch();
}
// [/register]
