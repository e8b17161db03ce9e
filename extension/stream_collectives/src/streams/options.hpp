#pragma once

#include "communicator.hpp"

namespace streams {

// The time that clocks can count to.
inline milliseconds countable(milliseconds timeout) {
  return std::min(timeout, frame::kLongest);
}

// A library that gives up by itself does so after the watchdog, whose error says more.
inline milliseconds timeout_of_library(milliseconds timeout) {
  return countable(timeout) + std::chrono::seconds(1);
}

// What a group asks the options of its backend.
struct Options {
  virtual ~Options() = default;
  virtual std::string unique_id() const = 0; // rank 0 draws it for all
  virtual std::unique_ptr<Communicator> connect_library(const Start&) const = 0;

  bool blocking_wait = false; // wait() makes the host wait, too
};

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
// Returns the communicator of this rank when all ranks have one. An earlier start, also
// one that was killed, may have left its keys in the store. So the frame's rendezvous
// comes first, and the id, which rank 0 draws, is one of this start.
inline std::unique_ptr<Communicator> connect(const StorePtr& store, int rank, int size,
    const frame::Options& own, const Options& library) {
  std::unique_ptr<Communicator> communicator;
  const frame::Names names{own.backend, own.group_name, own.global_ranks_in_group};
  frame::Rendezvous rendezvous(store, rank, size, names, own.timeout);
  rendezvous.meet([&](frame::Place place) {
    if (rank == 0) place.keys->publish("id", library.unique_id());
    const auto id = place.await({"id"})[0];
    communicator = library.connect_library({id, rank, size, place.deadline, store});
    return std::make_unique<NoTransport>(std::move(place));
  });
  return communicator;
}
// [/connect]

} // namespace streams
