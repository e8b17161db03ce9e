#pragma once

#include <optional>

#include "frame/note.hpp"

#include "memory.hpp"

namespace shm_collectives {

// The other ranks of a group, seen from one of them: whether they live, and the reason
// if the group has failed.
class Others {
 public:
  Others(const Memory& memory, int rank, const frame::Names& names)
      : memory_(memory), rank_(rank), names_(names) {
    for (int other = 0; other < size(); ++other) {
      const pid_t process = memory.member(other).process;
      // Ranks that are threads of one process end with it.
      processes_.push_back(process == getpid() ? nullptr : Process::find(process));
    }
  }

  std::optional<std::string> failure() const {
    const auto& header = memory_.header();
    const int rank = header.failed.load() - 1;
    if (rank < 0) return std::nullopt;
    if (header.explained.load()) return header.reason;
    // That rank is writing the reason, unless it has been killed.
    if (ended(rank)) return has_died(rank);
    return std::nullopt;
  }

  // [lost]
  // Why one of the missing ranks will never come.
  std::optional<std::string> lost(const std::vector<int>& missing) const {
    if (missing.empty()) return lost_any();
    for (const int rank : missing) {
      if (memory_.member(rank).left) return has_left(names_.who(rank));
      if (ended(rank)) return has_died(rank);
    }
    return std::nullopt;
  }
  // [/lost]

 private:
  // The same of a receive from any rank. It waits for each that has not left, because
  // that may be the sender.
  std::optional<std::string> lost_any() const {
    int left = 0;
    for (int rank = 0; rank < size(); ++rank) {
      if (memory_.member(rank).left) {
        left += rank != rank_;
      } else if (ended(rank)) {
        return has_died(rank);
      }
    }
    if (left == 0 || left < size() - 1) return std::nullopt;
    return "all other ranks have left the group (they destroyed or lost it)";
  }

  int size() const { return static_cast<int>(memory_.layout().ranks); }
  bool ended(int rank) const { return processes_[rank] && processes_[rank]->ended(); }
  static std::string has_left(const std::string& who) {
    return who + " has left the group (it destroyed or lost it)";
  }
  std::string has_died(int rank) const {
    return names_.who(rank) + " has died (process " +
        std::to_string(memory_.member(rank).process) + ")";
  }

  const Memory& memory_;
  const int rank_;
  const frame::Names& names_;
  std::vector<std::shared_ptr<const Process>> processes_; // null: this process
};

} // namespace shm_collectives
