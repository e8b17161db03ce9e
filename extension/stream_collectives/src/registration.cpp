#include "frame/registration.hpp"
#include "simulated_accelerator/include/stream.hpp"

#include "broken.hpp"
#include "library.hpp"
#include "streams/backend.hpp"

namespace stream_collectives {

// The options of the backend "simccl".
struct OptionsSimccl final : streams::OptionsOf<OptionsSimccl, BrokenGroup>, Rules {
  explicit OptionsSimccl(frame::milliseconds timeout = kBackendDefaultTimeout)
      : OptionsOf("simccl", timeout) {}

  std::string library = "gloo"; // the backend for the CPU that moves the data
  bool tags = true; // without them, messages run as with NCCL

  std::string unique_id() const override { return ::library::unique_id(); }
  std::unique_ptr<streams::Communicator> connect_library(
      const streams::Start& start) const override {
    const auto make = [this](const auto&... place) -> py::object {
      return py::module_::import("stream_collectives").attr("connect")(*this, place...);
    };
    return ::library::connect(start, library, make, tags);
  }
};

} // namespace stream_collectives

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  using namespace stream_collectives;
  using Backend = streams::BackendOf<OptionsSimccl, BrokenGroup>;
  module.doc() = "The simccl c10d backend, compiled for one release of PyTorch.";
  streams::define<OptionsSimccl, BrokenGroup>(module)
      .def_readwrite("library", &OptionsSimccl::library)
      .def_readwrite("tags", &OptionsSimccl::tags)
      .def_readwrite("broken", &OptionsSimccl::broken);
  module.def("communication_stream", [](Backend& backend, at::Device device) {
    const auto stream = backend.stream(device).pack3();
    return std::tuple(
        stream.stream_id, int(stream.device_index), int(stream.device_type));
  });
}
