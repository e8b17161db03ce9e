#pragma once

#include "frame/transport.hpp"

#include "others.hpp"

namespace shm_collectives {

using frame::Kind, frame::Operation, frame::Steps;

// Waits until the counters of some ranks have reached a value.
class Reached final : public frame::Awaited {
 public:
  using Counter = std::atomic<uint64_t>;

  // `stride` bytes lead from the counter of one rank to that of the next.
  Reached(Counter& first, uint64_t value, int rank, int ranks = 1, size_t stride = 0)
      : first_(&first), value_(value), rank_(rank), ranks_(ranks), stride_(stride) {}

  bool ready() override {
    for (; reached_ < ranks_; ++reached_) { // counters never go back
      if (!reached(reached_)) return false;
    }
    return true;
  }
  std::vector<int> missing() const override {
    std::vector<int> missing;
    for (int i = reached_; i < ranks_; ++i) {
      if (!reached(i)) missing.push_back(rank_ + i);
    }
    return missing;
  }

 private:
  // [counter]
  bool reached(int index) const {
    auto* const counter = reinterpret_cast<std::byte*>(first_) + index * stride_;
    // Pairs with the post: what was written before it can be read after this.
    return reinterpret_cast<Counter*>(counter)->load() >= value_;
  }
  // [/counter]

  Counter* first_;
  uint64_t value_;
  int rank_, ranks_;
  size_t stride_;
  int reached_ = 0; // of the ranks
};

// Spins as long as the answer of a running rank takes; returns whether it has come. The
// first looks have no pause between them, because a short message would notice it.
inline bool is_soon(frame::Awaited& awaited, const WaitingPolicy& policy) {
  constexpr int kWithoutPause = 16;
  for (int spins = 0; !awaited.ready(); ++spins) {
    if (spins == policy.spins) return false;
    if (spins >= kWithoutPause) relax();
  }
  return true;
}

static_assert(sizeof(Note) % sizeof(uint64_t) == 0);
// Equal for equal notes; of others, about one pair in 2^64 is equal, too.
inline uint64_t digest(const Note& note) {
  const Note compared = note.compared();
  uint64_t words[sizeof(Note) / sizeof(uint64_t)], digest = 0;
  std::memcpy(words, &compared, sizeof(compared));
  for (const uint64_t word : words) digest = (digest ^ word) * 0x9E3779B97F4A7C15;
  return digest;
}

// One step of the protocol that all collectives are made of. Every rank takes
// every step of the group, in the same order, and in each of them it
//
//   waits until its slot is free(), writes to mine(), posts the step, waits for
//   what others have posted(), reads the slots of() others, is done().
//
// A rank may post a step before it has read the one before. Of two ranks that share a
// sum, each also writes into the slot of the other, between posted() and done().
// [step]
class Step {
 public:
  Step(const Memory& memory, int rank, uint64_t number)
      : memory_(memory), rank_(rank), number_(number) {}

  // The number of steps that all must have read before the slot of this one is free.
  static uint64_t reads_before(uint64_t step) {
    return step < kSlots ? 0 : step - kSlots + 1;
  }
  Reached free() const { return all_read(reads_before(number_)); }

  // My slot, and the block of it that is meant for one rank.
  Bytes mine() const { return {slot().data(), memory_.layout().slot_bytes}; }
  Bytes mine(int block) const { return block_of(mine(), block); }

  // Memory order: the posting rank writes the slot and then the counter; whoever
  // has read the counter (Reached) may read the slot. In the other direction, a rank
  // reads a slot and then writes its counter `read`; the owner of the slot, having
  // seen that of all ranks, may write the slot again. The accesses are
  // sequentially consistent, which contains this release and acquire; Bell says
  // why they are not weaker.
  //
  // Only the last rank that posts or reads a step wakes those that sleep: earlier, they
  // would find nothing and sleep again. `awaited` is true if others wait for the step of
  // this rank alone, which then wakes them.
  void post(const Note& note, bool awaited = false) const {
    Slot& mine = slot();
    mine.note = note;
    mine.digest = digest(note);
    mine.posted.store(number_ + 1);
    memory_.ring_others(rank_, [&] { return awaited || posted().ready(); });
  }

  Reached posted() const {
    return {memory_.slot(0, number_).posted, number_ + 1, 0, ranks(),
        memory_.to_next_rank()};
  }
  Bytes of(int rank) const {
    return {memory_.slot(rank, number_).data(), memory_.layout().slot_bytes};
  }
  Bytes of(int rank, int block) const { return block_of(of(rank), block); }

  void done() const {
    memory_.member(rank_).read.store(number_ + 1);
    memory_.ring_others(rank_, [&] { return all_read(number_ + 1).ready(); });
  }
  // [/step]

  Reached posted_by(int rank) const {
    return {memory_.slot(rank, number_).posted, number_ + 1, rank};
  }

  // Begins to bring my slot, which is free, into the cache of this rank, without the line
  // of its counter: others may be looking at that.
  void prefetch(size_t bytes) const {
    Slot& slot = memory_.slot(rank_, number_);
    auto* const begin = reinterpret_cast<std::byte*>(&slot.posted) + kCacheLine;
    const auto size = slot.data() + bytes - begin;
    if (size > 0) prefetch_to_write(begin, size);
  }

  // [compare]
  // All have posted. Every rank compares the same notes, and so finds the same
  // difference.
  bool agrees() const {
    const uint64_t first = memory_.slot(0, number_).digest;
    for (int rank = 1; rank < ranks(); ++rank) {
      if (memory_.slot(rank, number_).digest != first) return false;
    }
    return true;
  }
  void require_agreement(const frame::Names& names) const {
    if (agrees()) return;
    std::vector<Note> notes;
    for (int rank = 0; rank < ranks(); ++rank) {
      notes.push_back(memory_.slot(rank, number_).note);
    }
    frame::compare(notes, names);
  }
  // [/compare]

 private:
  int ranks() const { return static_cast<int>(memory_.layout().ranks); }
  Reached all_read(uint64_t steps) const {
    return {memory_.member(0).read, steps, 0, ranks(), sizeof(Member)};
  }
  Slot& slot() const { return memory_.writable_slot(rank_, number_); }
  Bytes block_of(Bytes slot, int block) const {
    return frame::part(slot, block, memory_.layout().block_bytes);
  }

  const Memory& memory_;
  int rank_;
  uint64_t number_;
};

// The slots of all ranks, as one rank uses them for one operation after another.
class Channel {
 public:
  Channel(const Memory& memory, int rank, const frame::Names& names,
      const WaitingPolicy& policy)
      : memory_(memory), names_(names), policy_(policy), rank_(rank) {
    for (int other = 0; other < size(); ++other) {
      if (other != rank) others_.push_back(other);
    }
  }

  // Begins an operation. Returns its first step, which may have been posted at_once().
  uint64_t begin() { return first_; }
  bool posted_early() { return std::exchange(posted_early_, false); }
  // Ends it, after so many steps.
  void end(uint64_t steps) { first_ += steps; }

  Step step(uint64_t number) const { return {memory_, rank_, number}; }

  // All ranks have posted step `number`. A rank writes at most one step ahead of the one
  // that it reads, so it has read step number - 2 before it posted this one. So all ranks
  // have read the first number - 1 steps, without a look at their counters.
  void all_posted(uint64_t number) {
    const Step step = this->step(number);
    step.require_agreement(names_);
    all_read_ = std::max(all_read_, number == 0 ? 0 : number - 1);
  }

  // An operation of one step, run by the calling thread, which spins for a moment.
  // Returns false if that is too short; then the step has been posted, or not.
  template <class Write, class Read>
  bool at_once(const Note& note, const Write& write, const Read& read) {
    const Step step = this->step(first_);
    const bool is_free = all_read_ >= Step::reads_before(first_);
    if (!is_free && !step.free().ready()) return false;
    write(step, 0);
    step.post(note);
    posted_early_ = true;
    this->step(first_ + 1).prefetch(note.bytes);
    Reached posted = step.posted();
    if (!is_soon(posted, policy_)) return false;
    all_posted(first_);
    size_t parts = 1;
    read(step, 0, parts);
    if (parts > 1) return false; // reading again changes nothing
    step.done();
    posted_early_ = false;
    end(1);
    return true;
  }

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(memory_.layout().ranks); }
  const frame::Names& names() const { return names_; }
  const std::vector<int>& others() const { return others_; } // all ranks but this one
  size_t slot_bytes() const { return memory_.layout().slot_bytes; }
  size_t block_bytes() const { return memory_.layout().block_bytes; }
  // A list to fill, which is kept so that it need not be allocated again.
  std::vector<Bytes>& sources() {
    sources_.clear();
    return sources_;
  }

 private:
  const Memory& memory_;
  const frame::Names& names_;
  const WaitingPolicy& policy_;
  const int rank_;
  std::vector<int> others_;
  std::vector<Bytes> sources_;
  uint64_t first_ = 0; // step of the next operation
  uint64_t all_read_ = 0; // steps, at least
  bool posted_early_ = false; // the first step of the operation
};

} // namespace shm_collectives
