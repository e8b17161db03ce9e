#include "point_to_point.hpp"

#include <cstring>
#include <stdexcept>

namespace shm_collectives {

Mailbox::Mailbox(const Group& group) : group_(group),
    part_bytes_(group.memory().layout().part_bytes), sent_(group.size()), inboxes_(group.size()) {}

// [send]
Steps Mailbox::send(Note note, Bytes data, int to) {
  const auto& memory = group_.memory();
  Ring& ring = memory.ring(group_.rank(), to);
  const size_t count = parts(data.size(), part_bytes_);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t step = sent_[to]++;
    co_await Until{&ring.read, step < kSlots ? 0 : step - kSlots + 1, to, 1};
    SlotHeader& slot = memory.ring_slot(group_.rank(), to, step);
    const Bytes piece = part(data, i, part_bytes_);
    slot.note = note;
    if (!piece.empty()) std::memcpy(&slot + 1, piece.data(), piece.size());
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
    const auto& posted = group_.memory().ring(from, group_.rank()).posted;
    while (awaited(from)) {
      if (!deliver_kept(from)) {
        if (posted.load() == inboxes_[from].next) break;
        read_part(from);
      }
      any = true;
    }
  }
  return any;
}

// While nobody waits for a message of this rank, they stay where they are.
bool Mailbox::awaited(int from) const {
  return inboxes_[from].receive != nullptr ||
      std::ranges::any_of(waiting_, [&](const Receive* receive) {
           return receive->source == from || receive->source == kAnySource;
         });
}

bool Mailbox::deliver_kept(int from) {
  Inbox& inbox = inboxes_[from];
  for (auto message = inbox.kept.begin(); message != inbox.kept.end();
       ++message) {
    const bool incomplete = inbox.index > 0 && inbox.receive == nullptr &&
        std::next(message) == inbox.kept.end();
    Receive* receive = incomplete ? nullptr : take_receive(from, message->note);
    if (receive != nullptr) {
      if (receive->error.empty() && !message->data.empty()) {
        std::memcpy(receive->target.data(), message->data.data(), message->data.size());
      }
      receive->ended.store(1);
      inbox.kept.erase(message);
      return true;
    }
  }
  return false;
}

void Mailbox::read_part(int from) {
  Inbox& inbox = inboxes_[from];
  Ring& ring = group_.memory().ring(from, group_.rank());
  SlotHeader& slot = group_.memory().ring_slot(from, group_.rank(), inbox.next);
  if (inbox.index == 0) {
    inbox.receive = take_receive(from, slot.note);
    if (inbox.receive == nullptr) {
      inbox.kept.push_back({slot.note, std::vector<std::byte>(slot.note.bytes)});
    } else if (!inbox.receive->error.empty()) {
      // The group fails, and nothing more is read.
      std::exchange(inbox.receive, nullptr)->ended.store(1);
      return;
    }
  }
  const Bytes target = inbox.receive ? inbox.receive->target : Bytes(inbox.kept.back().data);
  const Bytes piece = part(target, inbox.index, part_bytes_);
  if (!piece.empty()) std::memcpy(piece.data(), &slot + 1, piece.size());
  ring.read.store(++inbox.next);
  group_.memory().member(from).bell.ring();
  if (++inbox.index == parts(target.size(), part_bytes_)) {
    inbox.index = 0;
    if (inbox.receive != nullptr) std::exchange(inbox.receive, nullptr)->ended.store(1);
  }
}
// [/receive]

// [match]
// The first receive that waits for this message; it waits no longer.
Mailbox::Receive* Mailbox::take_receive(int from, const Note& message) {
  const auto found = std::ranges::find_if(waiting_, [&](const Receive* receive) {
    return (receive->source == from || receive->source == kAnySource) &&
        receive->note.tag == message.tag;
  });
  if (found == waiting_.end()) return nullptr;
  Receive* receive = *found;
  waiting_.erase(found);
  receive->source = from;
  const Note& expected = receive->note;
  if (expected.bytes != message.bytes || expected.dtype != message.dtype) {
    receive->error = "the ranks do not agree: " + group_.who(from) + " runs " +
        describe(message) + " to " + group_.who(group_.rank()) +
        ", which runs " + describe(expected);
  }
  return receive;
}
// [/match]

} // namespace shm_collectives
