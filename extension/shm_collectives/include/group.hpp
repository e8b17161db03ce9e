#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "memory.hpp"
#include "steps.hpp"

namespace shm_collectives {

// [group]
// The ranks that share one memory, seen from one of them: who they are, whether
// they live, and why the group failed, if it did.
class Group {
 public:
  Group(Memory memory, int rank, std::string name, std::vector<uint64_t> global_ranks);

  const Memory& memory() const { return memory_; }
  int rank() const { return rank_; }
  int size() const { return static_cast<int>(memory_.layout().ranks); }
  const std::string& name() const { return name_; }
  Member& me() const { return memory_.member(rank_); }

  // "rank 1", with the global rank where that is another number.
  std::string who(int rank) const;
  // The ranks that have not done what `until` waits for: all, or the first.
  std::string missing(const Until& until, bool all) const;

  // Wakes every other rank that sleeps; call it after writing a counter.
  void ring_others() const;

  // Makes every operation of every rank fail, now and later. Only the first
  // reason counts.
  void fail(const std::string& reason) const;
  std::optional<std::string> failure() const;
  // The ranks among those awaited that will never come, and why; or nothing.
  std::optional<std::string> lost(const Until& until) const;

 private:
  Memory memory_;
  int rank_;
  std::string name_;
  std::vector<uint64_t> global_ranks_;
  std::vector<std::shared_ptr<const Process>> processes_; // null: this process
};
// [/group]

} // namespace shm_collectives
