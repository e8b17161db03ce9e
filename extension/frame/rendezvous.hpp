#pragma once

#include <thread>

#include <c10/util/Exception.h>

#include "pending.hpp"
#include "store_keys.hpp"

namespace frame {

// The start of a group: all ranks begin, or all raise the same error. The store may still
// hold keys of an earlier group of the same name, so every start has keys of its own: the
// n-th start of one rank meets the n-th start of each other rank.
//
//   <size>/<rank>: how many groups of this size the rank has started
//   <size>/<n>/<round>/<rank>: "ready", or why the rank cannot begin
//   <size>/<n>/<round>/verdict: "ready", or why there is no group
//
// There are two rounds: all have come, and all have made their transport.
class Rendezvous {
 public:
  Rendezvous(
      const StorePtr& store, int rank, int size, Names names, milliseconds timeout)
      : store_(StoreKeys::clone(store)),
        rank_(rank),
        size_(size),
        timeout_(timeout),
        names_(std::move(names)) {}

  // Returns the transport that `connect(place)` makes on this rank.
  template <class Connect>
  std::unique_ptr<Transport> meet(const Connect& connect) {
    std::unique_ptr<Transport> transport;
    auto problem = problem_of([&] {
      const auto size = names_.backend + "/" + std::to_string(size_) + "/";
      const auto number = StoreKeys(store_, size).add(std::to_string(rank_), 1);
      keys_ = std::make_shared<StoreKeys>(store_, size + std::to_string(number) + "/");
      return agree("came", kReady);
    });
    if (problem == kReady) {
      const auto mine = problem_of([&] {
        transport = connect(Place{rank_, size_, names_, keys_, deadline_});
        return std::string(kReady);
      });
      problem = problem_of([&] { return agree("made", mine); });
    }
    if (problem != kReady) {
      C10_THROW_ERROR(DistStoreError,
          "Backend " + names_.backend + ": " + names_.who(rank_) + " of " +
              std::to_string(size_) + " cannot join group \"" + names_.group +
              "\": " + problem);
    }
    return transport;
  }

 private:
  // Returns the same on all ranks: "ready", or why there is no group. The first rank that
  // knows decides, because a rank may come when another one has just given up.
  std::string agree(const std::string& round, const std::string& mine) {
    const auto key = [&](int rank) { return round + "/" + std::to_string(rank); };
    const std::string verdict = round + "/verdict";
    keys_->set_text(key(rank_), mine);
    std::vector<int> missing;
    const auto known = [&] {
      missing.clear();
      for (int rank = 0; rank < size_; ++rank) {
        if (!keys_->has({key(rank)})) missing.push_back(rank);
      }
      return missing.empty() || keys_->has({verdict});
    };
    for (microseconds pause(100); !known() && Clock::now() < deadline_;) {
      std::this_thread::sleep_for(pause);
      pause = std::min(2 * pause, microseconds(5000));
    }
    std::string reasons = late(missing);
    for (int rank = 0; rank < size_; ++rank) {
      const auto text = keys_->text(key(rank));
      if (text == kReady || text.empty()) continue;
      reasons += (reasons.empty() ? "" : "; ") + names_.who(rank) + ": " + text;
    }
    const auto text = keys_->set_first(verdict, reasons.empty() ? kReady : reasons);
    if (keys_->add(round + "/read", 1) < size_) return text;
    for (int rank = 0; rank < size_; ++rank) keys_->erase(key(rank));
    keys_->erase(verdict);
    keys_->erase(round + "/read");
    return text;
  }

  std::string late(const std::vector<int>& ranks) const {
    std::string text;
    for (const int rank : ranks) text += (text.empty() ? "" : ", ") + names_.who(rank);
    const auto time = std::to_string(timeout_.count()) + " ms";
    return text.empty() ? "" : text + " did not come within " + time;
  }

  // The text that a function returns or throws.
  template <class Function>
  static std::string problem_of(const Function& function) {
    try {
      return function();
    } catch (const c10::Error& error) {
      return error.what_without_backtrace();
    } catch (const std::exception& error) {
      return error.what();
    }
  }

  static constexpr const char* kReady = "ready";

  const StorePtr store_;
  const int rank_, size_;
  const milliseconds timeout_;
  const Clock::time_point deadline_ = in(timeout_);
  const Names names_;
  std::shared_ptr<StoreKeys> keys_; // of this group
};

} // namespace frame
