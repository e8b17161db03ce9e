#include "frame/registration.hpp"

#include "mpi_transport.hpp"

namespace mpi_collectives {

// The options of the backend "mpich".
struct OptionsMpich final : frame::OptionsOf<OptionsMpich> {
  explicit OptionsMpich(frame::milliseconds timeout = kBackendDefaultTimeout)
      : OptionsOf("mpich", timeout) {}

  // The network interface that MPI uses between hosts. By default, libfabric chooses.
  std::string interface;
  // A rank on another host counts as dead if it is not heard from for this time.
  frame::milliseconds heartbeat{10000};

  std::unique_ptr<frame::Transport> connect(frame::Place place) const override {
    return std::make_unique<MpiTransport>(place, interface, heartbeat);
  }
};

} // namespace mpi_collectives

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.doc() = "The mpich c10d backend, compiled for one release of PyTorch.";
  using mpi_collectives::OptionsMpich;
  frame::define<OptionsMpich>(module, {"cpu"})
      .def_readwrite("interface", &OptionsMpich::interface)
      .def_readwrite("heartbeat", &OptionsMpich::heartbeat);
}
