#include "frame/registration.hpp"

#include "sockets.hpp"

namespace tcp_collectives {

// The options of the backend "tcp".
struct OptionsTcp final : frame::OptionsOf<OptionsTcp> {
  explicit OptionsTcp(frame::milliseconds timeout = kBackendDefaultTimeout)
      : OptionsOf("tcp", timeout) {}

  // The network interface between hosts. By default, the first one that leads elsewhere.
  std::string interface;
  // Algorithms by name, such as "all_reduce=ring,broadcast=chain".
  std::string algorithms;
  // A rank on another host counts as dead if it is not heard from for this time.
  frame::milliseconds heartbeat{10000};

  std::unique_ptr<frame::Transport> connect(frame::Place place) const override {
    const frame::Choice choice(algorithms);
    return std::make_unique<frame::ConnectionTransport>(place,
        std::make_shared<Sockets>(place, interface, algorithms), choice, heartbeat);
  }
};

} // namespace tcp_collectives

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.doc() = "The tcp c10d backend, compiled for one release of PyTorch.";
  using tcp_collectives::OptionsTcp;
  frame::define<OptionsTcp>(module, {"cpu"})
      .def_readwrite("interface", &OptionsTcp::interface)
      .def_readwrite("algorithms", &OptionsTcp::algorithms)
      .def_readwrite("heartbeat", &OptionsTcp::heartbeat);
}
