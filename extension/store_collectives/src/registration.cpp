#include "frame/registration.hpp"
#include "store/store_transport.hpp"

namespace store_collectives {

// The options of the backend "store".
struct OptionsStore final : frame::OptionsOf<OptionsStore> {
  explicit OptionsStore(frame::milliseconds timeout = kBackendDefaultTimeout)
      : OptionsOf("store", timeout) {}

  // False where the store surely answers, such as a HashStore: then synchronous calls
  // drive, as for memory. Tests of the engine use it.
  bool can_block = true;

  std::unique_ptr<frame::Transport> connect(frame::Place place) const override {
    return std::make_unique<StoreTransport>(std::move(place), can_block);
  }
};

} // namespace store_collectives

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.doc() = "The store c10d backend, compiled for one release of PyTorch.";
  using store_collectives::OptionsStore;
  frame::define<OptionsStore>(module, {"cpu"})
      .def_readwrite("can_block", &OptionsStore::can_block);
}
