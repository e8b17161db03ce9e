#include "frame/registration.hpp"

#include "store_transport.hpp"

namespace store_collectives {

// The options of the backend "store", which has none but the timeout.
struct OptionsStore final : frame::OptionsOf<OptionsStore> {
  explicit OptionsStore(frame::milliseconds timeout = kBackendDefaultTimeout)
      : OptionsOf("store", timeout) {}

  std::unique_ptr<frame::Transport> connect(frame::Place place) const override {
    return std::make_unique<StoreTransport>(std::move(place));
  }
};

} // namespace store_collectives

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.doc() = "The store c10d backend, compiled for one release of PyTorch.";
  frame::define<store_collectives::OptionsStore>(module, {"cpu"});
}
