#pragma once

#include "watchdog.hpp"

namespace streams {

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

// [connect]
// Returns when all ranks have a communicator, and a thread that watches over it. An
// earlier start, also one that was killed, may have left its keys in the store. So the
// frame's rendezvous comes first, and the id, which rank 0 draws, is one of this start.
inline std::unique_ptr<WatchdogThread> connect(const StorePtr& store, int rank,
    int size, const frame::Options& own, const Options& library) {
  std::unique_ptr<WatchdogThread> watchdog;
  const frame::Names names{own.backend, own.group_name, own.global_ranks_in_group};
  frame::Rendezvous rendezvous(store, rank, size, names, own.timeout);
  rendezvous.meet([&](frame::Place place) {
    if (rank == 0) place.keys->publish("id", library.unique_id());
    const auto id = place.await({"id"})[0];
    watchdog = std::make_unique<WatchdogThread>(
        library.connect_library({id, rank, size, place.deadline, store}));
    return std::make_unique<NoTransport>(std::move(place));
  });
  return watchdog;
}
// [/connect]

} // namespace streams
