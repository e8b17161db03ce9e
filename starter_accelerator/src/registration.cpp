#include "frame/version.hpp"

// Another major version of the frame may need changes of this project.
#if C10D_FRAME_VERSION < 10000 || C10D_FRAME_VERSION >= 20000
#error "acme needs c10d-frame 1: python3 -m pip install --upgrade 'c10d-frame>=1,<2'"
#endif

#include "library.hpp"
#include "streams/backend.hpp"

namespace acme_collectives {

// The options of the backend, which a program passes as pg_options. Add those of your
// library as members, and name them at the end of this file.
struct OptionsAcme final : streams::OptionsOf<OptionsAcme> {
  explicit OptionsAcme(frame::milliseconds timeout = kBackendDefaultTimeout)
      : OptionsOf("acme", timeout) {}

  // The library is the one of the folder that setup.py chooses. Rank 0 draws the id.
  std::string unique_id() const override { return library::unique_id(); }
  std::unique_ptr<streams::Communicator> connect_library(
      const streams::Start& start) const override {
    return library::connect(start);
  }
};

} // namespace acme_collectives

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  streams::define<acme_collectives::OptionsAcme>(module);
}
