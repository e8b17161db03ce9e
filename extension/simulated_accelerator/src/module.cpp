#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/utils/pybind.h>

#include "kernels.hpp"

namespace sim {

// [autocast]
// The operations that CUDA casts, too.
#define LOWER(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define FULL(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define FULL_RESULT(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define WIDEST(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
  AT_FORALL_LOWER_PRECISION_FP(LOWER)
  AT_FORALL_FP32(FULL)
  AT_FORALL_FP32_SET_OPT_DTYPE(FULL_RESULT)
  AT_FORALL_PROMOTE(WIDEST)
}
// [/autocast]

// The engine of autograd starts a thread for each device when it first runs, and knows no
// device that comes later.
struct Engine : torch::autograd::Engine {
  static bool runs() {
    auto& engine = get_default_engine();
    return (engine.*(&Engine::thread_pool_shared_)) != nullptr;
  }
};

// [registration]
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

// [/registration]

void load() {
  if (Engine::runs()) {
    throw py::import_error(
        "simulated_accelerator: this process has run a backward pass already, and autograd "
        "takes no device after that; import the module before the first backward pass");
  }
  c10::SetAllocator(kSim, &allocator);
  at::RegisterPrivateUse1HooksInterface(&hooks);
}

} // namespace sim

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  using namespace sim;
  const py::call_guard<py::gil_scoped_release> without_gil;
  module.doc() = "The device sim, compiled for one release of PyTorch.";
  load();
  module.def("device_count", [] { return driver.devices(); });
  module.def("is_in_bad_fork", [] { return driver.forked(); });
  module.def("current_device", [] { return Guard().getDevice().index(); });
  module.def("stop", [] { driver.stop(); }, without_gil);
  module.def("generator", [](int device) { return hooks.getDefaultGenerator(device); });
  module.def("start_trace", [] { driver.trace(true); });
  module.def("stop_trace", [] { return driver.trace(false); });
  module.def("waiting_threads", [] { return driver.waiting(); });
  module.def(
      "settle", [](bool peers) { driver.settle(peers); }, py::arg("peers") = true,
      without_gil,
      "Return when no stream can go on by itself: each is idle, or waits for a gate or for "
      "another stream. Without `peers`, it may also wait for other processes.");
  py::class_<Gate>(module, "Gate", "Holds streams until the host opens it.")
      .def(py::init())
      .def(
          "hold", [](Gate& gate) { gate.hold(current_queue(-1)); },
          "Let the current stream wait until the gate is open.")
      .def("open", &Gate::open, without_gil, "Let all streams go on that wait for it.");
}
