#pragma once

#include <optional>

#include "frame/receives.hpp"

#include "step.hpp"

namespace shm_collectives {

using frame::Blob, frame::copy, frame::part, frame::parts;

// Up to this size, a message is tried at once: it takes about as long as to hand it to a
// thread.
constexpr size_t kMostAtOnce = 1 << 20;
constexpr size_t kLeastPart = 32 << 10; // of a message, apart from its last one

// Messages between two ranks. A message is cut into parts, which take the steps of the
// ring between the two. Its note says which receive it is for. A send ends when a
// receive has taken its message, or has begun to wait for another. Messages without a
// receive are kept up to a limit; then they stay in the ring, and their sender waits.
class Mailbox final : public frame::Receives {
 public:
  Mailbox(const Memory& memory, int rank, const frame::Names& names,
      const WaitingPolicy& policy)
      : Receives(rank, static_cast<int>(memory.layout().ranks), names),
        memory_(memory),
        rank_(rank),
        names_(names),
        policy_(policy),
        sent_(size()),
        turns_(size()),
        inboxes_(size()) {}

  // Some of its parts may have been posted at_once().
  Steps send(const Operation& op) {
    const int to = op.note.root;
    const uint64_t turn = turns_[to].taken++;
    size_t posted = std::exchange(posted_early_, 0);
    Reached mine(turns_[to].ended, turn, to); // one message after another
    co_await mine;
    for (; posted < count(op.note); ++posted) {
      Reached free = this->free(to);
      co_await free;
      post(op, posted);
    }
    Reached read = all_read(to);
    ++turns_[to].ended;
    co_await read;
  }

  // It may have begun at_once().
  Steps receive(const Operation& op) {
    const bool early = std::exchange(receives_early_, false);
    std::optional<Receive> own;
    Receive& receive = early ? *early_ : own.emplace(*this, op);
    co_await receive;
    op.source->store(receive.source);
  }

  // A message beside which there is no other, sent or received by the calling thread,
  // which spins for a moment. Returns false if that is too short; then it has begun, or
  // not, and goes on as the next send() or receive().
  bool at_once(const Operation& op) {
    if (op.note.bytes > kMostAtOnce) return false;
    return op.note.kind == Kind::send ? send_at_once(op) : receive_at_once(op);
  }

 private:
  struct Turns { // of the messages to one rank
    uint64_t taken = 0;
    std::atomic<uint64_t> ended{0};
  };

  // A message has at least as many parts as its ring has slots, so that the receiver
  // reads one while the next is written, unless they would be too small to be worth it.
  size_t part_of(size_t bytes) const {
    const size_t share = (bytes / kSlots + kCacheLine - 1) / kCacheLine * kCacheLine;
    return std::min(std::max(share, kLeastPart), memory_.layout().part_bytes);
  }
  size_t count(const Note& note) const {
    return parts(note.bytes, part_of(note.bytes));
  }
  // The next slot of the ring to a rank is free.
  Reached free(int to) const {
    return {memory_.ring(rank_, to).read, Step::reads_before(sent_[to]), to};
  }
  // That rank has read all that has been posted.
  Reached all_read(int to) const {
    return {memory_.ring(rank_, to).read, sent_[to], to};
  }
  void post(const Operation& op, size_t i) {
    const int to = op.note.root;
    RingSlot& slot = memory_.writable_ring_slot(rank_, to, sent_[to]); // may throw
    const uint64_t step = sent_[to]++;
    const Bytes piece = part(op.in[0], i, part_of(op.note.bytes));
    slot.note = op.note;
    copy({slot.data(), piece.size()}, piece);
    slot.posted.store(step + 1);
    memory_.member(to).bell.ring();
    prefetch_to_write(
        &memory_.ring_slot(rank_, to, sent_[to]), sizeof(RingSlot) + op.note.bytes);
  }

  bool send_at_once(const Operation& op) {
    const int to = op.note.root;
    for (; posted_early_ < count(op.note); ++posted_early_) {
      Reached free = this->free(to);
      if (!is_soon(free, policy_)) return false;
      post(op, posted_early_);
    }
    Reached read = all_read(to);
    if (!is_soon(read, policy_)) return false;
    posted_early_ = 0;
    return true;
  }

  bool receive_at_once(const Operation& op) {
    Receive& receive = early_.emplace(*this, op); // may throw
    receives_early_ = true;
    if (!is_soon(receive, policy_)) return false;
    op.source->store(receive.source);
    receives_early_ = false;
    return true;
  }

  bool look() override {
    bool moved = false;
    try {
      for (int from = 0; from < size(); ++from) {
        while (is_read(from) && read_part(from)) moved = true;
      }
    } catch (const std::bad_alloc& error) {
      throw std::runtime_error(
          names_.who(rank_) + " cannot keep a message: " + error.what());
    }
    return moved;
  }

  struct Message { // one that comes in
    Note note;
    Receive* receive; // that it is for; if none waits, it is kept:
    Blob kept;
    size_t parts_read = 0;
  };
  struct Inbox { // the messages of one rank
    uint64_t next = 0; // the next step of its ring
    std::optional<Message> incoming; // the last one, while parts of it are missing
  };

  // Messages of a rank stay in the ring while no receive waits for one of them.
  bool is_read(int from) const {
    const auto& incoming = inboxes_[from].incoming;
    return (incoming && incoming->receive != nullptr) || awaits(from);
  }

  bool read_part(int from) {
    auto& inbox = inboxes_[from];
    RingSlot& slot = memory_.ring_slot(from, rank_, inbox.next);
    if (slot.posted.load() != inbox.next + 1) return false;
    if (!inbox.incoming) {
      Receive* const receive = take(from, slot.note);
      if (receive == nullptr && is_full(from)) return false;
      Message message{slot.note, receive, {}};
      if (receive == nullptr) message.kept.resize(slot.note.bytes);
      inbox.incoming = std::move(message);
    }
    Message& message = *inbox.incoming;
    const Bytes target =
        message.receive ? message.receive->target : Bytes(message.kept);
    const size_t size = part_of(message.note.bytes);
    copy(part(target, message.parts_read++, size), {slot.data(), size});
    memory_.ring(from, rank_).read.store(++inbox.next);
    memory_.member(from).bell.ring();
    if (message.parts_read == count(message.note)) {
      if (message.receive != nullptr)
        message.receive->ended = true;
      else
        keep(from, message.note, std::move(message.kept));
      inbox.incoming.reset();
    }
    return true;
  }

  int size() const { return static_cast<int>(memory_.layout().ranks); }

  const Memory& memory_;
  const int rank_;
  const frame::Names& names_;
  const WaitingPolicy& policy_;
  std::vector<uint64_t> sent_; // steps taken on the ring to each rank
  std::vector<Turns> turns_;
  std::vector<Inbox> inboxes_;
  size_t posted_early_ = 0; // parts, of a send that has begun at_once()
  std::optional<Receive> early_; // the receive that has last begun at_once()
  bool receives_early_ = false; // it has not ended there
};

} // namespace shm_collectives
