#include "frame/registration.hpp"

#include "transport.hpp"

namespace shm_collectives {

// The options of the backend "shm".
struct OptionsShm final : frame::OptionsOf<OptionsShm> {
  explicit OptionsShm(frame::milliseconds timeout = kBackendDefaultTimeout)
      : OptionsOf("shm", timeout) {}

  // Each rank has 4 slots of this size; larger tensors go in several steps.
  uint64_t slot_bytes = 256 << 10;
  // The time for which a waiting thread lets others run before it goes to sleep. By
  // default, 500 microseconds where that helps: see WaitingPolicy.
  std::optional<microseconds> yield_for;

  std::unique_ptr<frame::Transport> connect(frame::Place place) const override {
    const uint64_t least = 2 * kCacheLine * place.size;
    if (slot_bytes < least || slot_bytes > kMostSlotBytes) {
      throw std::invalid_argument("slot_bytes must be from " + to_string(least) +
          " to " + to_string(kMostSlotBytes) + " for " + to_string(place.size) +
          " ranks, got " + to_string(slot_bytes));
    }
    return std::make_unique<ShmTransport>(std::move(place), slot_bytes, yield_for);
  }

 private:
  // More than there is memory, and little enough to multiply.
  static constexpr uint64_t kMostSlotBytes = uint64_t{1} << 44;
};

} // namespace shm_collectives

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.doc() = "The shm c10d backend, compiled for one release of PyTorch.";
  using shm_collectives::OptionsShm;
  frame::define<OptionsShm>(module, {"cpu"})
      .def_readwrite("slot_bytes", &OptionsShm::slot_bytes)
      .def_readwrite("yield_for", &OptionsShm::yield_for);
}
