// [includes]
#include <atomic>

#include <pybind11/chrono.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/utils/pybind.h>

namespace {

using Tensors = std::vector<at::Tensor>;
using FuturePtr = c10::intrusive_ptr<c10::ivalue::Future>;
using WorkPtr = c10::intrusive_ptr<c10d::Work>;
// [/includes]

// [devices]
// Code that waits for a future then waits for the streams of these devices.
std::vector<c10::Device> accelerators_of(const Tensors& tensors) {
  std::vector<c10::Device> devices;
  for (const auto& tensor : tensors) {
    if (!tensor.is_cpu()) devices.push_back(tensor.device());
  }
  return devices;
}
// [/devices]

// [work]
class WorkDummy : public c10d::Work {
 public:
  WorkDummy(c10d::OpType op_type, int rank, const Tensors& outputs)
      : c10d::Work(rank, op_type),
        future_(c10::make_intrusive<c10::ivalue::Future>(
            c10::ListType::create(c10::TensorType::get()), accelerators_of(outputs))) {
    future_->markCompleted(outputs);
  }
  bool isCompleted() override { return future_->completed(); }
  bool isSuccess() const override {
    return future_->completed() && !future_->hasError();
  }
  bool wait(std::chrono::milliseconds /* timeout */) override {
    future_->waitAndThrow();
    return true;
  }
  FuturePtr getFuture() override { return future_; }

 private:
  const FuturePtr future_;
};
// [/work]

// [backend]
class BackendDummy : public c10d::Backend {
 public:
  BackendDummy(int rank, int size) : c10d::Backend(rank, size) {}
  const std::string getBackendName() const override { return "dummy"; }
  // [/backend]

  // [collectives]
  WorkPtr allreduce(
      Tensors& tensors, const c10d::AllreduceOptions& /* opts */) override {
    return set_to_zero("allreduce", c10d::OpType::ALLREDUCE, tensors);
  }
  WorkPtr allgather(std::vector<Tensors>& output_lists, Tensors& inputs,
      const c10d::AllgatherOptions& /* opts */) override {
    TORCH_CHECK(output_lists.size() == 1 && inputs.size() == 1,
        "Backend dummy: allgather takes one input tensor and one list of outputs");
    TORCH_CHECK(output_lists[0].size() == static_cast<size_t>(getSize()),
        "Backend dummy: allgather needs one output tensor per rank (", getSize(),
        "), got ", output_lists[0].size());
    return set_to_zero("allgather", c10d::OpType::ALLGATHER, output_lists[0]);
  }
  // [/collectives]

  // [end]
  void shutdown() override { closed_ = true; }
  void abort() override { closed_ = true; }

 private:
  WorkPtr set_to_zero(const char* name, c10d::OpType op_type, const Tensors& outputs) {
    TORCH_CHECK(!closed_, "Backend dummy was shut down and cannot run ", name);
    const at::NoGradGuard no_grad;
    for (const auto& tensor : outputs) tensor.zero_();
    return c10::make_intrusive<WorkDummy>(op_type, getRank(), outputs);
  }
  std::atomic<bool> closed_{false};
};
// [/end]

// [create]
c10::intrusive_ptr<c10d::Backend> create_backend(
    const c10::intrusive_ptr<c10d::Store>& /* store */, int rank, int size,
    const std::chrono::milliseconds& /* timeout */) {
  return c10::make_intrusive<BackendDummy>(rank, size);
}
// [/create]

// [register]
void register_with_torch() {
  const auto backend_class = py::module_::import("torch.distributed").attr("Backend");
  if (backend_class.attr("backend_list").contains("dummy")) return;
  backend_class.attr("register_backend")("dummy",
      py::cpp_function(&create_backend, py::call_guard<py::gil_scoped_release>()),
      py::arg("devices") = std::vector<std::string>{"cpu", "cuda"});
}

} // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.doc() = "The dummy c10d backend, compiled for one release of PyTorch.";
  module.def("register", &register_with_torch);
  register_with_torch();
}
// [/register]
