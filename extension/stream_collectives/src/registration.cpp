#include "group.hpp"

namespace stream_collectives {

// The operations of the frame, with its checks of arguments, on streams.
class BackendSimccl final : public frame::BackendOn<StreamGroup> {
 public:
  using BackendOn::BackendOn;

  bool supportsCoalescing() const override { return true; }
  // [eager]
  // With init_process_group(device_id=...): has the stream before the first call.
  void eagerConnectSingleDevice(at::Device device) override { group_.stream(device); }
  // [/eager]
  WorkPtr barrier(const c10d::BarrierOptions& opts) override {
    auto device = getBoundDeviceId(); // c10d passes no opts.device
    if (!opts.device_ids.empty()) device = at::Device(kDevice, opts.device_ids[0]);
    const c10::OptionalDeviceGuard guard(device);
    return BackendOn::barrier(opts);
  }
  c10::Stream stream(at::Device device) { return group_.stream(device); }
};

BackendPtr OptionsSimccl::start(
    const StorePtr& store, int rank, int size, frame::OptionsPtr options) const {
  return c10::make_intrusive<BackendSimccl>(store, rank, size, std::move(options));
}

namespace {

// What the rendezvous holds. Nothing calls its methods, because calls go to the library.
class NoTransport final : public frame::Transport {
 public:
  using Transport::Transport;
  frame::Steps exchange(
      const frame::Note&, frame::Pieces, int, frame::Blobs&) override {
    return {};
  }
  frame::Steps send(const frame::Operation&) override { return {}; }
  frame::Steps receive(const frame::Operation&) override { return {}; }
};

} // namespace

std::unique_ptr<frame::Transport> OptionsSimccl::connect(frame::Place place) const {
  return std::make_unique<NoTransport>(std::move(place));
}

// [connect]
// Returns the library of this rank when all ranks have one. The library connects the
// ranks through keys of the store. A split gives it the store of the CPU's gloo, and an
// earlier start, also one that was killed, may have left its addresses there. So its keys
// get a prefix that rank 0 draws.
BackendPtr OptionsSimccl::connect(const StorePtr& store, int rank, int size) const {
  BackendPtr library;
  const frame::Names names{backend, group_name, global_ranks_in_group};
  frame::Rendezvous rendezvous(store, rank, size, names, timeout);
  rendezvous.meet([&](frame::Place place) {
    if (rank == 0)
      place.keys->publish("prefix", std::to_string(std::random_device()()));
    const auto prefix = "simccl/" + place.await({"prefix"})[0];
    library = start_library(c10::make_intrusive<c10d::PrefixStore>(prefix, store), rank,
        size, place.deadline);
    return connect(std::move(place));
  });
  library->setTimeout(timeout_of_library(timeout));
  return library;
}
// [/connect]

// The library is a backend of Python's registry. It may take as long as is left.
BackendPtr OptionsSimccl::start_library(const StorePtr& store, int rank, int size,
    frame::Clock::time_point deadline) const {
  const auto left = deadline - frame::Clock::now();
  const auto limit =
      std::max(milliseconds(1), std::chrono::duration_cast<milliseconds>(left));
  const py::gil_scoped_acquire gil;
  try {
    return py::module_::import("stream_collectives")
        .attr("connect")(*this, store, rank, size, limit)
        .cast<BackendPtr>();
  } catch (const py::error_already_set& error) {
    throw std::runtime_error(
        "its library " + library + ": " + py::str(error.value()).cast<std::string>());
  }
}

} // namespace stream_collectives

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  using namespace stream_collectives;
  module.doc() = "The simccl c10d backend, compiled for one release of PyTorch.";
  frame::define<OptionsSimccl, BackendSimccl>(module, {"sim"})
      .def_readwrite("library", &OptionsSimccl::library)
      .def_readwrite("blocking_wait", &OptionsSimccl::blocking_wait)
      .def_readwrite("broken", &OptionsSimccl::broken);
  module.def("communication_stream", [](BackendSimccl& backend, at::Device device) {
    const auto stream = backend.stream(device).pack3();
    return std::tuple(
        stream.stream_id, int(stream.device_index), int(stream.device_type));
  });
}
