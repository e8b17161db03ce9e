#pragma once

#include <list>

#include "channel.hpp"

namespace shm_collectives {

constexpr int kAnySource = -1;
constexpr size_t kMostKept = 64 << 20; // bytes of messages that no receive waits for

// Messages between two ranks. A message is cut into parts, which take the steps of the
// ring between the two. Its note says which receive it is for. A send ends when a
// receive has taken its message, or has begun to wait for another. Messages without a
// receive are kept up to a limit; then they stay in the ring, and their sender waits.
class Mailbox {
 public:
  explicit Mailbox(const Group& group)
      : group_(group),
        part_bytes_(group.memory().layout().part_bytes),
        sent_(group.size()),
        inboxes_(group.size()) {}

  Steps send(Note note, Bytes data, int to) {
    const auto& memory = group_.memory();
    Ring& ring = memory.ring(group_.rank(), to);
    for (size_t i = 0; i < parts(data.size(), part_bytes_); ++i) {
      const uint64_t step = sent_[to]++;
      co_await Until{&ring.read, step < kSlots ? 0 : step - kSlots + 1, to, 1};
      Slot& slot = memory.writable_ring_slot(group_.rank(), to, step);
      const Bytes piece = part(data, i, part_bytes_);
      slot.note = note;
      copy({slot.data(), piece.size()}, piece);
      ring.posted.store(step + 1);
      memory.member(to).bell.ring();
    }
    co_await Until{&ring.read, sent_[to], to, 1};
  }

  // `source` may be kAnySource; the sender's rank is written to it.
  Steps receive(Note note, Bytes target, std::shared_ptr<std::atomic<int>> source) {
    Receive receive{note, target, *source, 0, ""};
    waiting_.push_back(&receive);
    co_await Until{&receive.ended, 1, receive.source, 1};
    if (!receive.error.empty()) throw std::runtime_error(receive.error);
    *source = receive.source;
  }

  // Gives what has come in to the receives that wait; false if nothing has.
  bool deliver() {
    bool any = false;
    for (int from = 0; from < group_.size(); ++from) {
      while (awaited(from) && (deliver_kept(from) || read_part(from))) any = true;
    }
    return any;
  }

 private:
  struct Receive { // one that waits
    Note note;
    Bytes target;
    int source;
    std::atomic<uint64_t> ended{0};
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
        receive->ended.store(1);
        bytes_kept -= message->bytes_kept();
        messages.erase(message);
        return true;
      }
    }
    return false;
  }

  bool read_part(int from) {
    auto& [next, bytes_kept, messages] = inboxes_[from];
    Ring& ring = group_.memory().ring(from, group_.rank());
    if (ring.posted.load() == next) return false;
    Slot& slot = group_.memory().ring_slot(from, group_.rank(), next);
    if (messages.empty() || is_complete(messages.back())) {
      Receive* receive = take_receive(from, slot.note);
      if (receive != nullptr && !receive->error.empty()) {
        receive->ended.store(1); // the group fails, and nothing more is read
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
    ring.read.store(++next);
    group_.memory().member(from).bell.ring();
    if (message.receive != nullptr && is_complete(message)) {
      message.receive->ended.store(1);
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
      receive->error = "the ranks do not agree: " + group_.who(from) + " runs " +
          describe(message) + ", " + group_.who(group_.rank()) + " runs " +
          describe(receive->note);
    }
    return receive;
  }

  const Group& group_;
  const size_t part_bytes_;
  std::vector<uint64_t> sent_; // steps taken on the ring to each rank
  std::vector<Inbox> inboxes_;
  std::list<Receive*> waiting_; // in the order of their calls
};

} // namespace shm_collectives
