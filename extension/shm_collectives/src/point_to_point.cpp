#include "point_to_point.hpp"

#include <stdexcept>

namespace shm_collectives {

Mailbox::Mailbox(const Group& group) : group_(group),
    part_bytes_(group.memory().layout().part_bytes), sent_(group.size()), inboxes_(group.size()) {}

// [send]
Steps Mailbox::send(Note note, Bytes data, int to) {
  const auto& memory = group_.memory();
  Ring& ring = memory.ring(group_.rank(), to);
  for (size_t i = 0; i < parts(data.size(), part_bytes_); ++i) {
    const uint64_t step = sent_[to]++;
    co_await Until{&ring.read, step < kSlots ? 0 : step - kSlots + 1, to, 1};
    Slot& slot = memory.ring_slot(group_.rank(), to, step);
    const Bytes piece = part(data, i, part_bytes_);
    slot.note = note;
    copy({slot.data(), piece.size()}, piece);
    ring.posted.store(step + 1);
    memory.member(to).bell.ring();
  }
  co_await Until{&ring.read, sent_[to], to, 1};
}
// [/send]

// [receive]
Steps Mailbox::receive(Note note, Bytes target, std::shared_ptr<std::atomic<int>> source) {
  Receive receive{note, target, *source, 0, ""};
  waiting_.push_back(&receive);
  co_await Until{&receive.ended, 1, receive.source, 1};
  if (!receive.error.empty()) throw std::runtime_error(receive.error);
  *source = receive.source;
}

bool Mailbox::deliver() {
  bool any = false;
  for (int from = 0; from < group_.size(); ++from) {
    while (awaited(from) && (deliver_kept(from) || read_part(from))) any = true;
  }
  return any;
}

// While nobody waits for a message of this rank, they stay where they are.
bool Mailbox::awaited(int from) const {
  const auto& messages = inboxes_[from].messages;
  const auto could_be = [from](const Receive* receive) {
    return receive->source == from || receive->source == kAnySource;
  };
  return (!messages.empty() && messages.back().receive != nullptr) ||
      std::ranges::any_of(waiting_, could_be);
}

bool Mailbox::deliver_kept(int from) {
  auto& messages = inboxes_[from].messages;
  for (auto message = messages.begin(); message != messages.end(); ++message) {
    if (!is_complete(*message)) continue;
    if (Receive* receive = take_receive(from, message->note)) {
      if (receive->error.empty()) copy(receive->target, message->kept);
      receive->ended.store(1);
      messages.erase(message);
      return true;
    }
  }
  return false;
}

bool Mailbox::read_part(int from) {
  auto& [next, messages] = inboxes_[from];
  Ring& ring = group_.memory().ring(from, group_.rank());
  if (ring.posted.load() == next) return false;
  Slot& slot = group_.memory().ring_slot(from, group_.rank(), next);
  if (messages.empty() || is_complete(messages.back())) {
    Receive* receive = take_receive(from, slot.note);
    if (receive != nullptr && !receive->error.empty()) {
      receive->ended.store(1); // the group fails, and nothing more is read
      return true;
    }
    messages.push_back({slot.note, receive, {}});
    if (receive == nullptr) messages.back().kept.resize(slot.note.bytes);
  }
  Message& message = messages.back();
  const Bytes target = message.receive ? message.receive->target : Bytes(message.kept);
  copy(part(target, message.parts_read++, part_bytes_), {slot.data(), part_bytes_});
  ring.read.store(++next);
  group_.memory().member(from).bell.ring();
  if (message.receive != nullptr && is_complete(message)) {
    message.receive->ended.store(1);
    messages.pop_back();
  }
  return true;
}
// [/receive]

// [match]
// The first receive that waits for this message; it waits no longer.
Mailbox::Receive* Mailbox::take_receive(int from, const Note& message) {
  // [first-receive]
  const auto found = std::ranges::find_if(waiting_, [&](const Receive* receive) {
    return (receive->source == from || receive->source == kAnySource) &&
        receive->note.tag == message.tag;
  });
  if (found == waiting_.end()) return nullptr;
  Receive* receive = *found;
  waiting_.erase(found);
  // [/first-receive]
  receive->source = from;
  if (receive->note.bytes != message.bytes || receive->note.dtype != message.dtype) {
    receive->error = "the ranks do not agree: " + group_.who(from) + " runs " +
        describe(message) + " to " + group_.who(group_.rank()) + ", which runs " +
        describe(receive->note);
  }
  return receive;
}
// [/match]

} // namespace shm_collectives
