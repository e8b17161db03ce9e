#pragma once

#include <algorithm>
#include <cstring>

#include "group.hpp"
#include "steps.hpp"

namespace shm_collectives {

class Channel;

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
  Step(const Channel& channel, uint64_t number) : channel_(channel), number_(number) {}

  // Every rank is done with what my slot held before.
  Until free() const;
  // My slot, and the block of it that is meant for one rank.
  Bytes mine() const;
  Bytes mine(int block) const;
  void post() const;

  // Every rank has posted this step, and for the same operation as I have.
  struct Everyone;
  Everyone posted() const;
  Until posted_by(int rank) const;
  Bytes of(int rank) const;
  Bytes of(int rank, int block) const;
  void done() const;

 private:
  void compare_notes() const;

  const Channel& channel_;
  uint64_t number_;
};

struct Step::Everyone : Until {
  Step step;
  void await_resume() const { step.compare_notes(); }
};
// [/step]

// [channel]
// The slots of all ranks, as one rank uses them for one operation after another.
class Channel {
 public:
  explicit Channel(const Group& group);

  // Begins an operation, which describes itself in `note`; returns the number of
  // its first step.
  uint64_t begin(const Note& note);
  Step step(uint64_t number);

  int rank() const { return group_.rank(); }
  int size() const { return group_.size(); }
  const std::vector<int>& others() const { return others_; } // all ranks but this one
  size_t slot_bytes() const { return group_.memory().layout().slot_bytes; }
  size_t block_bytes() const { return block_bytes_; }

 private:
  friend class Step;

  const Group& group_;
  const size_t block_bytes_;
  std::vector<int> others_;
  uint64_t next_ = 0; // the first step that no operation has taken
  Note note_; // of the operation that runs
};
// [/channel]

// [parts]
// The bytes of part number `index`, when `bytes` are cut into parts of `size`.
inline Bytes part(Bytes bytes, size_t index, size_t size) {
  const size_t start = std::min(index * size, bytes.size());
  return bytes.subspan(start, std::min(size, bytes.size() - start));
}

// How many parts there are: at least one, for the note.
inline size_t parts(size_t bytes, size_t size) {
  return std::max<size_t>(1, (bytes + size - 1) / size);
}

// Fills `to`, or copies all there is.
inline void copy(Bytes to, Bytes from) {
  const size_t size = std::min(to.size(), from.size());
  if (to.data() != from.data() && size > 0) std::memmove(to.data(), from.data(), size);
}
// [/parts]

} // namespace shm_collectives
