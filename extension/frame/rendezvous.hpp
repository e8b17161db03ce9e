#pragma once

#include <map>
#include <optional>
#include <random>

#include <c10/util/Exception.h>

#include "pending.hpp"
#include "store_keys.hpp"
#include "threads.hpp"

namespace frame {

// [keys-of-a-meeting]
// The start of a group: all ranks begin, or each raises an error that says why. The store
// may still hold keys of an earlier group of the same name, also of one that was killed. So
// only member/<rank> has a fixed name; the others contain a number drawn for this start:
//
//   member/<rank>: the number of the rank
//
//   answer/<number of the rank>: the number of rank 0, whose keys all use from then on
//
//   <number of 0>/<round>/<rank>: "ready" and the rank's number, or why it cannot begin
//
//   <number of 0>/<round>/verdict: "ready", or why there is no group
//
// There are two rounds: all have come, and all have made their transport.
// [/keys-of-a-meeting]
class Rendezvous {
 public:
  Rendezvous(
      const StorePtr& store, int rank, int size, Names names, milliseconds timeout)
      : store_(store),
        rank_(rank),
        size_(size),
        timeout_(timeout),
        names_(std::move(names)) {}

  // [meet]
  // Returns the transport that connect(place) makes on this rank.
  template <class Connect>
  std::unique_ptr<Transport> meet(const Connect& connect) {
    std::unique_ptr<Transport> transport;
    auto problem = problem_of([&] {
      find_keys();
      return agree("came", ready_);
    });
    if (problem == kReady) {
      const auto mine = problem_of([&] {
        transport = connect(Place{rank_, size_, names_, keys_, deadline_});
        return ready_;
      });
      problem = problem_of([&] {
        if (mine != ready_) keys_->set_text(Place::kFailed, mine);
        return agree("made", mine);
      });
      // Without the store, a rank still knows its own reason.
      const bool unsaid = mine != ready_ && problem.find(mine) == std::string::npos;
      if (unsaid) problem = mine + "; " + problem;
    }
    if (problem != kReady) {
      C10_THROW_ERROR(DistStoreError,
          "Backend " + names_.backend + ": " + names_.who(rank_) + " of " +
              std::to_string(size_) + " cannot join group \"" + names_.group +
              "\": " + problem);
    }
    transport->joined();
    return transport;
  }
  // [/meet]

 private:
  // Finds the keys of this group, with the number of rank 0 as their prefix.
  void find_keys() {
    const auto lobby = names_.backend + "/" + std::to_string(size_) + "/";
    lobby_.emplace(StoreKeys::open(store_, lobby, deadline_));
    auto number = mine_;
    if (rank_ != 0) {
      const auto member = "member/" + std::to_string(rank_), answer = "answer/" + mine_;
      lobby_->set_text(member, mine_);
      if (!poll_until([&] { return lobby_->has({answer}); }, deadline_)) {
        throw std::runtime_error(late({0}));
      }
      number = lobby_->text(answer);
      lobby_->erase(answer);
      if (lobby_->text(member) == mine_) lobby_->erase(member);
    }
    keys_ = std::make_shared<StoreKeys>(lobby_->below(number + "/"));
  }

  // Rank 0 answers each number: that of an earlier start, too, whose answer is not read.
  void welcome(int rank) {
    const auto number = lobby_->text("member/" + std::to_string(rank));
    if (number.empty() || answered_[rank] == number) return;
    lobby_->set_text("answer/" + number, mine_);
    answered_[rank] = number;
  }

  // [agree]
  // Returns the same on all ranks: "ready", or why there is no group. Rank 0 looks who has
  // come, and decides when all have. A rank whose time is over decides, too; the first
  // verdict counts, because a rank may come when another one has just given up.
  std::string agree(const std::string& round, const std::string& mine) {
    Keys::Names all;
    for (int rank = 0; rank < size_; ++rank) {
      all.push_back(round + "/" + std::to_string(rank));
    }
    const auto verdict = round + "/verdict";
    enter(all[rank_], mine);
    std::vector<bool> come(size_);
    const auto all_have_come = [&] {
      for (int rank = 0; rank < size_; ++rank) {
        if (!come[rank]) come[rank] = keys_->has({all[rank]});
        if (!come[rank]) welcome(rank);
      }
      return std::ranges::find(come, false) == come.end();
    };
    const auto decided = [&] {
      return (rank_ == 0 && all_have_come()) || keys_->has({verdict});
    };
    poll_until(decided, deadline_);
    auto text = keys_->text(verdict);
    if (text.empty()) text = keys_->set_first(verdict, judge(all));
    problem_of([&] { // the verdict counts, even if the store is lost from here on
      if (text == kReady) keys_->erase_published();
      end_round(round, all);
      return "";
    });
    return text;
  }
  // [/agree]

  // Why there is no group, or "ready".
  std::string judge(const Keys::Names& all) const {
    std::vector<int> missing;
    std::string reasons;
    for (int rank = 0; rank < size_; ++rank) {
      const auto text = keys_->text(all[rank]);
      if (text.empty()) missing.push_back(rank);
      if (text.empty() || text.starts_with(kReady)) continue;
      reasons += (reasons.empty() ? "" : "; ") + names_.who(rank) + ": " + text;
    }
    if (missing.empty()) return reasons.empty() ? kReady : reasons;
    return late(missing) + (reasons.empty() ? "" : "; ") + reasons;
  }

  // The last rank that knows the verdict erases the keys of the round. Rank 0 waits for
  // those who have come: it often hosts the store, and its program may end after this.
  void end_round(const std::string& round, const Keys::Names& all) const {
    const auto verdict = round + "/verdict", read = round + "/read";
    if (keys_->add(read, 1) == size_) {
      for (const auto& key : all) keys_->erase(key);
      keys_->erase(read);
      keys_->erase(verdict); // the last, because rank 0 waits for it
    } else if (rank_ == 0) {
      int here = 0;
      for (const auto& key : all) here += keys_->has({key});
      const auto all_know = [&] {
        return !keys_->has({verdict}) || (here < size_ && keys_->count(read) >= here);
      };
      poll_until(all_know, in(kLastMoments));
    }
  }

  void enter(const std::string& key, const std::string& text) const {
    if (keys_->set_first(key, text) != text) {
      throw std::runtime_error("another process is this rank already");
    }
  }

  std::string late(const std::vector<int>& ranks) const {
    std::string text;
    for (const int rank : ranks) text += (text.empty() ? "" : ", ") + names_.who(rank);
    return text + " did not come within " + std::to_string(timeout_.count()) + " ms";
  }

  // The text that a function returns or throws.
  template <class Function>
  static std::string problem_of(const Function& function) {
    try {
      return function();
    } catch (const c10::Error& error) {
      return error.what_without_backtrace();
    } catch (const std::system_error& error) {
      const bool threads = error.code() == std::errc::resource_unavailable_try_again;
      return threads ? shortage_of_threads(error) : error.what();
    } catch (const std::exception& error) {
      return error.what();
    }
  }

  static std::string draw() {
    std::random_device random;
    return std::to_string(uint64_t{random()} << 32 | random());
  }

  static constexpr const char* kReady = "ready";

  const StorePtr store_;
  const int rank_, size_;
  const milliseconds timeout_;
  const Clock::time_point deadline_ = in(timeout_);
  const Names names_;
  const std::string mine_ = draw(), ready_ = std::string(kReady) + " " + mine_;
  std::optional<StoreKeys> lobby_; // for ranks that do not know the number of rank 0
  std::map<int, std::string> answered_;
  std::shared_ptr<StoreKeys> keys_; // of this group
};

} // namespace frame
