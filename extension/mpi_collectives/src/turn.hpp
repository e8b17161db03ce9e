#pragma once

#include <algorithm>
#include <map>
#include <random>

#include "frame/transport.hpp"

namespace mpi_collectives {

using std::to_string;

// [turn]
// The right to create a communicator, on each rank of a group. The creation holds up the
// thread of MPI until all ranks do the same, so two groups that two threads create in
// opposite orders would stop each other. A process therefore creates one at a time. A group
// collects the turns of its processes in an order that is the same for all groups, so no
// two groups wait for each other.
//
//   mpi/process/<rank>: the number of its process, which gives the order
//
//   mpi/turn/<rank>: what the rank says when it has its turn
//
//   mpi/verdict: "go", or why a rank has given up, which then holds for all
class Turn {
 public:
  // Waits until this rank has its turn.
  explicit Turn(const frame::Place& place) : place_(place) {
    for (int rank = 0; rank < place.size; ++rank) {
      process_keys_.push_back("mpi/process/" + to_string(rank));
      turn_keys_.push_back("mpi/turn/" + to_string(rank));
      order_.push_back(rank);
    }
    place.keys->set_text(process_keys_[place.rank], number());
    processes_ = await(process_keys_, order_);
    order_ = ordered();
    const auto mine = std::find(order_.begin(), order_.end(), place.rank);
    if (mine != order_.begin()) await(turn_keys_, {*std::prev(mine)});
    has_turn_ =
        frame::poll_until([] { return !taken_.exchange(true); }, place.deadline);
    if (!has_turn_)
      throw std::runtime_error("this process still creates another group");
  }
  ~Turn() {
    if (has_turn_) taken_ = false;
  }
  Turn(const Turn&) = delete;

  // Returns what each rank says. Then all have their turns, and all go on.
  std::vector<std::string> meet(const std::string& mine) const {
    auto& keys = *place_.keys;
    std::string problem;
    try {
      keys.set_text(turn_keys_[place_.rank], mine);
      await(turn_keys_, order_);
    } catch (const std::exception& error) {
      problem = error.what();
    }
    // The first rank decides: one may come to its deadline when another has just seen all.
    const auto verdict = keys.set_first(kVerdict, problem.empty() ? kGo : problem);
    if (verdict != kGo) throw std::runtime_error(verdict);
    const auto said = place_.await(turn_keys_);
    if (keys.add(kRead, 1) == place_.size) {
      for (const auto& key : process_keys_) keys.erase(key);
      for (const auto& key : turn_keys_) keys.erase(key);
      keys.erase(kVerdict);
      keys.erase(kRead);
    }
    return said;
  }

  // The number of the process of rank 0.
  const std::string& first() const { return processes_[0]; }
  // [/turn]

 private:
  static const std::string& number() {
    static const std::string drawn = [] {
      std::random_device random;
      return to_string(uint64_t{random()} << 32 | random());
    }();
    return drawn;
  }

  // The ranks in the order of their turns.
  std::vector<int> ordered() const {
    const auto& names = place_.names;
    std::map<std::string, int> ranks;
    for (int rank = 0; rank < place_.size; ++rank) {
      const auto& process = processes_[rank];
      if (process.empty() || process.find_first_not_of("0123456789") != process.npos) {
        throw std::runtime_error("another program has changed what " + names.who(rank) +
            " has written to the store");
      }
      const auto [other, is_new] = ranks.emplace(process, rank);
      if (is_new) continue;
      throw std::runtime_error(names.who(other->second) + " and " + names.who(rank) +
          " are one process, but MPI needs one for each rank");
    }
    std::vector<int> order;
    for (const auto& [process, rank] : ranks) order.push_back(rank);
    return order;
  }

  // Returns what these ranks say. The keys are those of all ranks.
  std::vector<std::string> await(
      const frame::Keys::Names& keys, const std::vector<int>& ranks) const {
    frame::Keys::Names wanted;
    for (const int rank : ranks) wanted.push_back(keys[rank]);
    try {
      return place_.await(wanted);
    } catch (const std::exception&) {
      if (frame::Clock::now() < place_.deadline) throw;
      const auto late = std::find_if(order_.begin(), order_.end(),
          [&](int rank) { return !place_.keys->has({keys[rank]}); });
      if (late == order_.end()) throw;
      throw std::runtime_error(place_.names.who(*late) +
          " does not connect in time; another of its threads may still create a group");
    }
  }

  static constexpr const char* kVerdict = "mpi/verdict";
  static constexpr const char* kRead = "mpi/read";
  static constexpr const char* kGo = "go";
  static inline std::atomic<bool> taken_ = false; // by a group of this process

  const frame::Place place_;
  frame::Keys::Names process_keys_, turn_keys_;
  std::vector<std::string> processes_; // their numbers, by rank
  std::vector<int> order_; // of turns
  bool has_turn_ = false;
};

} // namespace mpi_collectives
