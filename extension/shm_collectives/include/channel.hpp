#pragma once

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "group.hpp"

namespace shm_collectives {

// One piece of memory for each rank.
using Pieces = std::vector<Bytes>;

// The bytes of part number `index`, when `bytes` are cut into parts of `size`.
inline Bytes part(Bytes bytes, size_t index, size_t size) {
  const size_t start = std::min(index * size, bytes.size());
  return bytes.subspan(start, std::min(size, bytes.size() - start));
}

// The number of parts: at least one, for the note.
inline size_t parts(size_t bytes, size_t size) {
  return std::max<size_t>(1, (bytes + size - 1) / size);
}

// Fills `to`, or copies all there is.
inline void copy(Bytes to, Bytes from) {
  const size_t size = std::min(to.size(), from.size());
  if (to.data() != from.data() && size > 0) std::memmove(to.data(), from.data(), size);
}

// [step]
// One step of the protocol that all collectives are made of. Every rank takes
// every step of the group, in the same order, and in each of them it
//
//   waits until its slot is free(), writes to mine(), posts the step, waits for
//   what others have posted(), reads the slots of() others, is done().
//
// A rank may post a step before it has read the one before.
class Step {
 public:
  Step(const Group& group, const Note& note, uint64_t number)
      : group_(group), note_(note), number_(number) {}

  // Every rank is done with what my slot held before.
  Until free() const {
    const uint64_t steps_read = number_ < kSlots ? 0 : number_ - kSlots + 1;
    return {
        &group_.memory().member(0).read, steps_read, 0, group_.size(), sizeof(Member)};
  }

  // My slot, and the block of it that is meant for one rank.
  Bytes mine() const { return {slot().data(), group_.memory().layout().slot_bytes}; }
  Bytes mine(int block) const {
    return part(mine(), block, group_.memory().layout().block_bytes);
  }

  // [post]
  // Memory order: the posting rank writes the slot and then the counter; whoever
  // has read the counter (Until) may read the slot. In the other direction, a rank
  // reads a slot and then writes its counter `read`; the owner of the slot, having
  // seen that of all ranks, may write the slot again. The accesses are
  // sequentially consistent, which contains this release and acquire; Bell says
  // why they are not weaker.
  void post() const {
    slot().note = note_;
    group_.me().posted.store(number_ + 1);
    group_.ring_others();
  }
  // [/post]

  // Every rank has posted this step, and for the same operation as I have.
  struct Everyone : Until {
    const Step& step;
    void await_resume() const { step.compare_notes(); }
  };
  Everyone posted() const {
    const auto& first = group_.memory().member(0).posted;
    return {{&first, number_ + 1, 0, group_.size(), sizeof(Member)}, *this};
  }
  Until posted_by(int rank) const {
    return {&group_.memory().member(rank).posted, number_ + 1, rank, 1};
  }

  std::string who(int rank) const { return group_.who(rank); }

  Bytes of(int rank) const {
    const auto& memory = group_.memory();
    return {memory.slot(rank, number_).data(), memory.layout().slot_bytes};
  }
  Bytes of(int rank, int block) const {
    return part(of(rank), block, group_.memory().layout().block_bytes);
  }

  void done() const {
    group_.me().read.store(number_ + 1);
    group_.ring_others();
  }
  // [/step]

 private:
  Slot& slot() const { return group_.memory().writable_slot(group_.rank(), number_); }

  // [compare]
  // Every rank compares the same notes, and so finds the same difference.
  void compare_notes() const {
    const auto note_of = [&](int rank) -> const Note& {
      return group_.memory().slot(rank, number_).note;
    };
    for (int rank = 1; rank < group_.size(); ++rank) {
      if (note_of(rank) != note_of(0)) {
        throw std::runtime_error("the ranks do not agree: " + group_.who(0) + " runs " +
            describe(note_of(0)) + ", " + group_.who(rank) + " runs " +
            describe(note_of(rank)));
      }
    }
  }
  // [/compare]

  const Group& group_;
  const Note& note_;
  uint64_t number_;
};

// The slots of all ranks, as one rank uses them for one operation after another.
class Channel {
 public:
  explicit Channel(const Group& group) : group_(group) {
    for (int rank = 0; rank < size(); ++rank) {
      if (rank != group.rank()) others_.push_back(rank);
    }
  }

  // Begins an operation, which describes itself in `note`; returns the number of
  // its first step.
  uint64_t begin(const Note& note) {
    note_ = note;
    // two threads may have drawn their numbers in another order
    note_.sequence = ++begun_;
    return next_;
  }
  Step step(uint64_t number) {
    next_ = std::max(next_, number + 1);
    return {group_, note_, number};
  }

  int rank() const { return group_.rank(); }
  int size() const { return group_.size(); }
  const std::vector<int>& others() const { return others_; } // all ranks but this one
  size_t slot_bytes() const { return group_.memory().layout().slot_bytes; }
  size_t block_bytes() const { return group_.memory().layout().block_bytes; }

 private:
  const Group& group_;
  std::vector<int> others_;
  uint64_t next_ = 0; // the first step that no operation has taken
  uint64_t begun_ = 0; // operations
  Note note_; // of the operation that runs
};

} // namespace shm_collectives
