#pragma once

#include <sstream>
#include <thread>

#include "collectives.hpp"
#include "messages.hpp"

namespace shm_collectives {

using std::to_string;

constexpr const char* kPlaceOfMemory = "memory"; // a key

// Rank 0 makes the memory and says where it is: its process, a descriptor, the time at
// which it made it. The other ranks open it.
inline Memory create_or_open(const frame::Place& place, const Layout& layout) {
  if (place.rank == 0) {
    const uint64_t nonce = Clock::now().time_since_epoch().count();
    Memory memory = Memory::create(layout, nonce);
    place.keys->publish(kPlaceOfMemory,
        to_string(getpid()) + " " + to_string(memory.descriptor()) + " " +
            to_string(nonce));
    return memory;
  }
  const auto& home = place.members[place.rank].home;
  const auto& its_home = place.members[0].home;
  if (its_home != home) {
    throw std::runtime_error("it cannot share memory with " + place.names.who(0) +
        ": it is \"" + home + "\", " + place.names.who(0) + " is \"" + its_home +
        "\"; ranks of different hosts, containers or users can use gloo");
  }
  std::istringstream text(place.await({kPlaceOfMemory})[0]);
  pid_t process = 0;
  int descriptor = 0;
  uint64_t nonce = 0;
  text >> process >> descriptor >> nonce;
  return Memory::open(process, descriptor, layout, nonce);
}

// Moves bytes between the ranks of one host, through memory that they share.
class ShmTransport final : public frame::Transport {
 public:
  ShmTransport(
      frame::Place place, uint64_t slot_bytes, std::optional<microseconds> yield_for)
      : Transport(place),
        yield_for_(yield_for),
        memory_(create_or_open(place, Layout(place.size, slot_bytes))),
        channel_(memory_, rank(), names(), policy_),
        mailbox_(memory_, rank(), names(), policy_) {
    memory_.enter(rank());
  }

  bool can_block() const override { return false; } // it only looks at memory

  void joined() override {
    memory_.close_descriptor();
    others_.emplace(memory_, rank(), names());
    bool one_session = true;
    for (int other = 0; other < size(); ++other) {
      one_session &= memory_.member(other).session == memory_.member(0).session;
    }
    const bool fit =
        static_cast<unsigned>(size()) <= std::thread::hardware_concurrency();
    policy_ = WaitingPolicy(fit, one_session, yield_for_);
  }

  Steps exchange(const Note& note, frame::Pieces shown, int from,
      frame::Blobs& received) override {
    return steps::exchange(channel_, note, shown, from, received);
  }
  Steps collective(const Operation& op) override {
    return steps::collective(channel_, op);
  }
  bool at_once(const Operation& op) override {
    if (memory_.header().failed != kGood) return false;
    const bool message = frame::is_message(op.note.kind);
    return message ? mailbox_.at_once(op) : steps::at_once(channel_, op);
  }
  Steps send(const Operation& op) override { return mailbox_.send(op); }
  Steps receive(const Operation& op) override { return mailbox_.receive(op); }

  std::optional<std::string> failure() override { return others_->failure(); }
  std::optional<std::string> lost(const std::vector<int>& missing) override {
    return others_->lost(missing);
  }
  void announce(const std::string& reason) override { memory_.fail(rank(), reason); }

  Steps leave(bool /* orderly */) override { // the others keep the memory
    memory_.member(rank()).left = true;
    memory_.ring_others(rank());
    return {};
  }

  bool rest(
      const frame::Idle& idle, Clock::time_point limit, const Look& look) override {
    return shm_collectives::rest(
        idle, policy_, memory_.member(rank()).bell, limit, look);
  }
  void wake() override { memory_.member(rank()).bell.ring(); }

 private:
  const std::optional<microseconds> yield_for_;
  WaitingPolicy policy_{false, false, microseconds(0)};
  Memory memory_;
  Channel channel_;
  Mailbox mailbox_;
  std::optional<Others> others_;
};

} // namespace shm_collectives
