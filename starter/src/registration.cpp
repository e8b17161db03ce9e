#include "frame/version.hpp"

// Another major version of the frame may need changes of this project.
#if C10D_FRAME_VERSION < 10000 || C10D_FRAME_VERSION >= 20000
#error "acme needs c10d-frame 1: python3 -m pip install --upgrade 'c10d-frame>=1,<2'"
#endif

#include "frame/registration.hpp"

#include "acme_transport.hpp"

namespace acme_collectives {

// The options of the backend, which a program passes as pg_options. Add those of your
// library as members, and name them at the end of this file.
struct OptionsAcme final : frame::OptionsOf<OptionsAcme> {
  explicit OptionsAcme(frame::milliseconds timeout = kBackendDefaultTimeout)
      : OptionsOf("acme", timeout) {}

  std::unique_ptr<frame::Transport> connect(frame::Place place) const override {
    return std::make_unique<AcmeTransport>(place);
  }
};

} // namespace acme_collectives

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  // The devices whose tensors the backend takes.
  frame::define<acme_collectives::OptionsAcme>(module, {"cpu"});
}
