#pragma once

#include <random>
#include <thread>

#include <c10/util/Exception.h>

#include "pending.hpp"
#include "store_keys.hpp"

namespace frame {

// The start of a group: all ranks begin, or all raise the same error. The store may still
// hold keys of an earlier group of the same name, so a key counts only if it contains a
// number that was drawn for this group:
//
//   member/<rank>: a number that the rank has drawn
//   answer/<number of a rank>: rank 0's number, from then on the prefix of all keys
//   <number of 0>/<round>/<rank>: "ready", or why the rank cannot begin
//   <number of 0>/<round>/verdict: "ready", or all these reasons
//
// There are two rounds: all have come, and all have made their transport.
class Rendezvous {
 public:
  Rendezvous(const StorePtr& store, int rank, int size, Names names, milliseconds timeout)
      : store_(StoreKeys::clone(store)), lobby_(store_, names.backend + "/"), rank_(rank),
      size_(size), timeout_(timeout), names_(std::move(names)) {}

  // Returns the transport that `connect(place)` makes on this rank.
  template <class Connect>
  std::unique_ptr<Transport> meet(const Connect& connect) {
    std::unique_ptr<Transport> transport;
    std::string problem = problem_of([&] { return enter(); });
    if (problem.empty()) problem = problem_of([&] { return agree("came", ""); });
    if (problem.empty()) {
      const std::string mine = problem_of([&] {
        transport = connect(Place{rank_, size_, names_, keys_, deadline_});
        return std::string();
      });
      problem = problem_of([&] { return agree("made", mine); });
    }
    if (!problem.empty()) {
      C10_THROW_ERROR(DistStoreError, "Backend " + names_.backend + ": " +
          names_.who(rank_) + " of " + std::to_string(size_) + " cannot join group \"" +
          names_.group + "\": " + problem);
    }
    return transport;
  }

 private:
  // Learns the prefix of the group. Returns why this rank cannot begin, or nothing.
  std::string enter() {
    const std::string mine = draw();
    std::string number = mine;
    if (rank_ != 0) {
      lobby_.set_text(member(rank_), mine);
      const auto answered = [&] { return !lobby_.text("answer/" + mine).empty(); };
      if (!await(answered)) {
        lobby_.erase(member(rank_));
        return late({0});
      }
      number = lobby_.text("answer/" + mine);
      lobby_.erase("answer/" + mine);
    }
    prefix_ = number + "/";
    keys_ = std::make_shared<StoreKeys>(store_, names_.backend + "/" + prefix_);
    guests_.resize(size_);
    return keys_->add("entered/" + std::to_string(rank_), 1) == 1
        ? "" : "another process is this rank already";
  }

  // Rank 0 answers each rank as soon as it has come. An old number is answered, too,
  // which nobody reads; then the true one replaces it.
  void welcome() {
    for (int rank = 1; rank < size_; ++rank) {
      const std::string text = lobby_.text(member(rank));
      if (text.empty() || text == guests_[rank]) continue;
      guests_[rank] = text;
      const std::string number = prefix_.substr(0, prefix_.size() - 1);
      lobby_.set_text("answer/" + text, number);
    }
  }

  // Returns the same on all ranks: nothing, or why there is no group.
  std::string agree(const std::string& round, const std::string& problem) {
    const auto key = [&](auto what) { return round + "/" + std::to_string(what); };
    const std::string verdict = round + "/verdict";
    keys_->set_text(key(rank_), problem.empty() ? kReady : problem);
    std::vector<int> missing;
    const bool in_time = await([&] {
      if (rank_ == 0) welcome();
      missing.clear();
      for (int rank = 0; rank < size_; ++rank) {
        if (!keys_->has({key(rank)})) missing.push_back(rank);
      }
      return keys_->has({verdict}) || (rank_ == 0 && missing.empty());
    });
    if (!keys_->has({verdict}) && (rank_ == 0 || !in_time)) {
      std::string reasons = missing.empty() && !in_time ? late({0}) : late(missing);
      for (int rank = 0; rank < size_; ++rank) {
        const std::string text = keys_->text(key(rank));
        if (text != kReady && !text.empty()) {
          reasons += (reasons.empty() ? "" : "; ") + names_.who(rank) + ": " + text;
        }
      }
      // The first decision counts.
      if (keys_->add(round + "/decided", 1) == 1) {
        keys_->set_text(verdict, reasons.empty() ? kReady : reasons);
      }
    }
    std::string text;
    for (const auto end = in(milliseconds(5000)); text.empty() && Clock::now() < end;) {
      text = keys_->text(verdict);
      if (text.empty()) std::this_thread::sleep_for(milliseconds(1));
    }
    if (rank_ == 0 && round == "came") {
      for (int rank = 1; rank < size_; ++rank) lobby_.erase(member(rank));
    }
    if (round == "made" && keys_->add("known", 1) == size_) forget();
    return text == kReady ? "" : text.empty() ? "no rank has decided" : text;
  }

  // All have read the verdict.
  void forget() {
    keys_->erase("known");
    for (const std::string round : {"came/", "made/"}) {
      for (const auto* what : {"verdict", "decided"}) keys_->erase(round + what);
      for (int rank = 0; rank < size_; ++rank) keys_->erase(round + std::to_string(rank));
    }
    for (int rank = 0; rank < size_; ++rank) {
      keys_->erase("entered/" + std::to_string(rank));
    }
  }

  static std::string member(int rank) { return "member/" + std::to_string(rank); }

  static std::string draw() {
    std::random_device random;
    return std::to_string(uint64_t{random()} << 32 | random());
  }

  // Asks again and again; false if the time is over.
  template <class Done>
  bool await(const Done& done) const {
    for (microseconds pause(100);; pause = std::min(2 * pause, microseconds(5000))) {
      if (done()) return true;
      if (Clock::now() > deadline_) return false;
      std::this_thread::sleep_for(pause);
    }
  }

  // The problem that a function returns or throws.
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

  std::string late(const std::vector<int>& ranks) const {
    std::string text;
    for (const int rank : ranks) text += (text.empty() ? "" : ", ") + names_.who(rank);
    const auto time = std::to_string(timeout_.count()) + " ms";
    return text.empty() ? "" : text + " did not come within " + time;
  }

  static constexpr const char* kReady = "ready";

  const StorePtr store_;
  StoreKeys lobby_; // of all groups that ever meet at this store
  const int rank_, size_;
  const milliseconds timeout_;
  const Clock::time_point deadline_ = in(timeout_);
  const Names names_;
  std::string prefix_;
  std::shared_ptr<Keys> keys_; // of this group
  std::vector<std::string> guests_; // the numbers that rank 0 has answered
};

} // namespace frame
