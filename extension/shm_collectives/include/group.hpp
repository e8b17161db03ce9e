#pragma once

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "memory.hpp"
#include "steps.hpp"

namespace shm_collectives {

// The ranks that share one memory, seen from one of them: their names, whether they
// live, and the reason if the group has failed.
class Group {
 public:
  Group(Memory memory, int rank, std::string name, std::vector<uint64_t> global_ranks)
      : memory_(std::move(memory)),
        rank_(rank),
        name_(std::move(name)),
        global_ranks_(std::move(global_ranks)) {
    for (int other = 0; other < size(); ++other) {
      const pid_t process = memory_.member(other).process;
      // Ranks that are threads of one process end with it.
      processes_.push_back(process == getpid() ? nullptr : Process::find(process));
    }
  }

  const Memory& memory() const { return memory_; }
  int rank() const { return rank_; }
  int size() const { return static_cast<int>(memory_.layout().ranks); }
  const std::string& name() const { return name_; }
  Member& me() const { return memory_.member(rank_); }

  std::string who(int rank) const { return shm_collectives::who(rank, global_ranks_); }

  // The ranks that have not done what `until` waits for, all or the first, in
  // the words of PyTorch's own monitored barrier: "Rank 1", "Ranks 1, 2".
  std::string missing(const Until& until, bool all) const {
    if (until.rank < 0) return "any rank";
    std::string names;
    int count = 0;
    for (int index = 0; index < until.ranks && (all || count == 0); ++index) {
      if (!until.reached_by(index)) {
        names += (count++ ? ", " : "") + who(until.rank + index).substr(5);
      }
    }
    return (count == 1 ? "Rank " : "Ranks ") + names;
  }

  // Wakes every other rank that sleeps; call it after writing a counter.
  void ring_others() const {
    for (int other = 0; other < size(); ++other) {
      if (other != rank_) memory_.member(other).bell.ring();
    }
  }

  void fail(const std::string& reason) const { memory_.fail(rank_, kBegun, reason); }

  std::optional<std::string> failure() const {
    const auto& header = memory_.header();
    const int rank = header.state.load() - kFailed;
    if (rank < 0) return std::nullopt;
    if (header.explained.load()) return header.reason;
    // That rank is writing the reason, unless it has been killed.
    if (ended(rank)) return has_died(rank);
    return std::nullopt;
  }

  // The ranks among those awaited that will never come, and why; or nothing.
  std::optional<std::string> lost(const Until& until) const {
    // [lost]
    // A receive from any rank waits for each that has not left: it may be the sender.
    const bool any = until.rank < 0;
    int gone = 0;
    for (int index = 0; index < (any ? size() : until.ranks); ++index) {
      const int rank = any ? index : until.rank + index;
      const bool dead = ended(rank);
      const bool left = memory_.member(rank).left;
      gone += left;
      // Look at the counter last: a rank may post its last step and then end.
      if ((dead || left) && !(any && left) && !until.reached_by(any ? 0 : index)) {
        return left ? who(rank) + " has left the group (it destroyed or lost it)"
                    : has_died(rank);
      }
    }
    // [/lost]
    if (any && size() > 1 && gone == size() - 1 && !until.reached()) {
      return "all other ranks have left the group (they destroyed or lost it)";
    }
    return std::nullopt;
  }

 private:
  bool ended(int rank) const { return processes_[rank] && processes_[rank]->ended(); }
  std::string has_died(int rank) const {
    return who(rank) + " has died (process " +
        std::to_string(memory_.member(rank).process) + ")";
  }

  Memory memory_;
  int rank_;
  std::string name_;
  std::vector<uint64_t> global_ranks_;
  std::vector<std::shared_ptr<const Process>> processes_; // null: this process
};

} // namespace shm_collectives
