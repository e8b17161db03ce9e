#pragma once

#include <list>

#include "step.hpp"

namespace shm_collectives {

using frame::copy, frame::kAnySource, frame::part, frame::parts;

constexpr size_t kMostKept = 64 << 20; // bytes of messages that no receive waits for

// Messages between two ranks. A message is cut into parts, which take the steps of the
// ring between the two. Its note says which receive it is for. A send ends when a
// receive has taken its message, or has begun to wait for another. Messages without a
// receive are kept up to a limit; then they stay in the ring, and their sender waits.
class Mailbox {
 public:
  Mailbox(const Memory& memory, int rank, const frame::Names& names)
      : memory_(memory),
        rank_(rank),
        names_(names),
        part_bytes_(memory.layout().part_bytes),
        sent_(size()),
        turns_(size()),
        inboxes_(size()) {}

  Steps send(const Operation& op) {
    const int to = op.note.root;
    const uint64_t turn = turns_[to].taken++;
    Reached mine(turns_[to].ended, turn, to); // one message after another
    co_await mine;
    Ring& ring = memory_.ring(rank_, to);
    for (size_t i = 0; i < parts(op.in[0].size(), part_bytes_); ++i) {
      const uint64_t step = sent_[to]++;
      Reached free(ring.read, Step::reads_before(step), to);
      co_await free;
      Slot& slot = memory_.writable_ring_slot(rank_, to, step);
      const Bytes piece = part(op.in[0], i, part_bytes_);
      slot.note = op.note;
      copy({slot.data(), piece.size()}, piece);
      slot.posted.store(step + 1);
      memory_.member(to).bell.ring();
    }
    Reached read(ring.read, sent_[to], to);
    ++turns_[to].ended;
    co_await read;
  }

  Steps receive(const Operation& op) {
    Receive receive(*this, op);
    waiting_.push_back(&receive);
    co_await receive;
    if (!receive.error.empty()) throw std::runtime_error(receive.error);
    op.source->store(receive.source);
  }

 private:
  struct Turns { // of the messages to one rank
    uint64_t taken = 0;
    std::atomic<uint64_t> ended{0};
  };

  // Gives what has come in to the receives that wait.
  void deliver() {
    try {
      for (int from = 0; from < size(); ++from) {
        while (awaited(from) && (deliver_kept(from) || read_part(from))) continue;
      }
    } catch (const std::bad_alloc& error) {
      throw std::runtime_error(
          names_.who(rank_) + " cannot keep a message: " + error.what());
    }
  }

  struct Receive final : frame::Awaited { // one that waits
    Receive(Mailbox& mailbox, const Operation& op)
        : mailbox(mailbox), note(op.note), target(op.out[0]), source(op.note.root) {}
    ~Receive() { std::erase(mailbox.waiting_, this); }

    bool ready() override {
      if (!ended) mailbox.deliver();
      return ended;
    }
    std::vector<int> missing() const override {
      return source == kAnySource ? std::vector<int>() : std::vector{source};
    }

    Mailbox& mailbox;
    Note note;
    Bytes target;
    int source;
    bool ended = false;
    std::string error;

    bool could_be_from(int rank) const {
      return source == rank || source == kAnySource;
    }
  };
  struct Message { // one that comes in
    Note note;
    Receive* receive; // that it is for; if none waits, it is kept:
    std::vector<std::byte> kept;
    size_t parts_read = 0;

    size_t bytes_kept() const { return receive ? 0 : sizeof(Message) + note.bytes; }
  };
  struct Inbox { // the messages of one rank
    uint64_t next = 0; // the next step of its ring
    size_t bytes_kept = 0; // of all messages
    std::list<Message> messages; // only the last can be incomplete
  };

  bool is_complete(const Message& message) const {
    return message.parts_read == parts(message.note.bytes, part_bytes_);
  }

  // Messages of a rank stay in the ring while no receive waits for one of them.
  bool awaited(int from) const {
    const auto& messages = inboxes_[from].messages;
    return (!messages.empty() && messages.back().receive != nullptr) ||
        std::ranges::any_of(
            waiting_, [from](auto* waits) { return waits->could_be_from(from); });
  }

  bool deliver_kept(int from) {
    auto& [next, bytes_kept, messages] = inboxes_[from];
    for (auto message = messages.begin(); message != messages.end(); ++message) {
      if (!is_complete(*message)) continue;
      if (Receive* receive = take_receive(from, message->note)) {
        if (receive->error.empty()) copy(receive->target, message->kept);
        receive->ended = true;
        bytes_kept -= message->bytes_kept();
        messages.erase(message);
        return true;
      }
    }
    return false;
  }

  bool read_part(int from) {
    auto& [next, bytes_kept, messages] = inboxes_[from];
    Slot& slot = memory_.ring_slot(from, rank_, next);
    if (slot.posted.load() != next + 1) return false;
    if (messages.empty() || is_complete(messages.back())) {
      Receive* receive = take_receive(from, slot.note);
      if (receive != nullptr && !receive->error.empty()) {
        receive->ended = true; // the group fails; the message stays in the ring
        return true;
      }
      if (receive == nullptr && bytes_kept >= kMostKept) return false;
      messages.push_back({slot.note, receive, {}});
      if (receive == nullptr) messages.back().kept.resize(slot.note.bytes);
      bytes_kept += messages.back().bytes_kept();
    }
    Message& message = messages.back();
    const Bytes target =
        message.receive ? message.receive->target : Bytes(message.kept);
    copy(part(target, message.parts_read++, part_bytes_), {slot.data(), part_bytes_});
    memory_.ring(from, rank_).read.store(++next);
    memory_.member(from).bell.ring();
    if (message.receive != nullptr && is_complete(message)) {
      message.receive->ended = true;
      messages.pop_back();
    }
    return true;
  }

  // The first receive that waits for this message; it waits no longer.
  Receive* take_receive(int from, const Note& message) {
    // [first-receive]
    const auto found = std::ranges::find_if(waiting_, [&](const Receive* receive) {
      return receive->could_be_from(from) && receive->note.tag == message.tag;
    });
    if (found == waiting_.end()) return nullptr;
    Receive* receive = *found;
    waiting_.erase(found);
    // [/first-receive]
    receive->source = from;
    if (receive->note.bytes != message.bytes || receive->note.dtype != message.dtype) {
      receive->error = "the ranks do not agree: " + names_.who(from) + " runs " +
          describe(message) + ", " + names_.who(rank_) + " runs " +
          describe(receive->note);
    }
    return receive;
  }

  int size() const { return static_cast<int>(memory_.layout().ranks); }

  const Memory& memory_;
  const int rank_;
  const frame::Names& names_;
  const size_t part_bytes_;
  std::vector<uint64_t> sent_; // steps taken on the ring to each rank
  std::vector<Turns> turns_;
  std::vector<Inbox> inboxes_;
  std::list<Receive*> waiting_; // in the order of their calls
};

} // namespace shm_collectives
