#include "frame/version.hpp"

// Another major version of the frame may need changes of this project.
#if C10D_FRAME_VERSION < 10100 || C10D_FRAME_VERSION >= 20000
#error "acme needs c10d-frame 1.1: python3 -m pip install --upgrade 'c10d-frame>=1,<2'"
#endif

#include "frame/registration.hpp"

#include "acme_messages.hpp"

namespace acme_collectives {

// The options of the backend, which a program passes as pg_options. Add those of your
// library as members, and name them at the end of this file.
struct OptionsAcme final : frame::OptionsOf<OptionsAcme> {
  explicit OptionsAcme(frame::milliseconds timeout = kBackendDefaultTimeout)
      : OptionsOf("acme", timeout) {}

  // Algorithms by name, such as "all_reduce=ring", the same on all ranks. The frame
  // chooses the rest.
  std::string algorithms;
  // A rank on another host counts as dead if it is not heard from for this time.
  frame::milliseconds heartbeat{10000};

  std::unique_ptr<frame::Transport> connect(frame::Place place) const override {
    const frame::Choice choice(algorithms);
    return std::make_unique<frame::ConnectionTransport>(
        place, std::make_shared<AcmeMessages>(place), choice, heartbeat);
  }
};

} // namespace acme_collectives

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  // The devices whose tensors the backend takes.
  using acme_collectives::OptionsAcme;
  frame::define<OptionsAcme>(module, {"cpu"})
      .def_readwrite("algorithms", &OptionsAcme::algorithms)
      .def_readwrite("heartbeat", &OptionsAcme::heartbeat);
}
