#include "channel.hpp"

#include <stdexcept>

namespace shm_collectives {

Channel::Channel(const Group& group)
    : group_(group), block_bytes_(slot_bytes() / group.size() / kCacheLine * kCacheLine) {
  for (int rank = 0; rank < size(); ++rank) {
    if (rank != group.rank()) others_.push_back(rank);
  }
}

uint64_t Channel::begin(const Note& note) {
  note_ = note;
  return next_;
}

Step Channel::step(uint64_t number) {
  next_ = std::max(next_, number + 1);
  return {*this, number};
}

// [protocol]
// Memory order: the posting rank writes the slot and then the counter; whoever
// has read the counter (Until) may read the slot. In the other direction, a rank
// reads a slot and then writes its counter `read`; the owner of the slot, having
// seen that of all ranks, may write the slot again. The accesses are
// sequentially consistent, which contains this release and acquire; Bell says
// why they are not weaker.
Until Step::free() const {
  const auto& memory = channel_.group_.memory();
  const uint64_t steps_read = number_ < kSlots ? 0 : number_ - kSlots + 1;
  return {&memory.member(0).read, steps_read, 0, channel_.size(), sizeof(Member)};
}

void Step::post() const {
  const auto& group = channel_.group_;
  group.memory().slot(group.rank(), number_).note = channel_.note_;
  group.me().posted.store(number_ + 1);
  group.ring_others();
}

Step::Everyone Step::posted() const {
  const auto& first = channel_.group_.memory().member(0).posted;
  return {{&first, number_ + 1, 0, channel_.size(), sizeof(Member)}, *this};
}

Until Step::posted_by(int rank) const {
  const auto& member = channel_.group_.memory().member(rank);
  return {&member.posted, number_ + 1, rank, 1};
}

void Step::done() const {
  const auto& group = channel_.group_;
  group.me().read.store(number_ + 1);
  group.ring_others();
}
// [/protocol]

Bytes Step::of(int rank) const {
  return {channel_.group_.memory().slot(rank, number_).data(), channel_.slot_bytes()};
}

Bytes Step::of(int rank, int block) const {
  return part(of(rank), block, channel_.block_bytes());
}

Bytes Step::mine() const {
  return of(channel_.rank());
}

Bytes Step::mine(int block) const {
  return of(channel_.rank(), block);
}

// [compare]
// Every rank compares the same notes, and so finds the same difference.
void Step::compare_notes() const {
  const auto& group = channel_.group_;
  const auto note_of = [&](int rank) -> const Note& {
    return group.memory().slot(rank, number_).note;
  };
  for (int rank = 1; rank < group.size(); ++rank) {
    if (note_of(rank) != note_of(0)) {
      throw std::runtime_error("the ranks do not agree: " + group.who(0) + " runs " +
          describe(note_of(0)) + ", " + group.who(rank) + " runs " + describe(note_of(rank)));
    }
  }
}
// [/compare]

} // namespace shm_collectives
