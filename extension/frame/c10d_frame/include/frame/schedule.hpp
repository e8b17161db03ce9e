#pragma once

#include <list>

#include "pending.hpp"

namespace frame {

// What a rank has to run, until when, and why it cannot go on. It has no thread and no
// lock of its own: the mutex of Progress guards it. Operations that are taken out belong
// to the thread that took them out, which ends them.
class Schedule {
 public:
  using List = std::list<PendingPtr>;

  // Behind the others; before them if at_once() has begun it.
  void add(List&& one, bool has_begun) {
    unfinished_.splice(has_begun ? unfinished_.begin() : unfinished_.end(), one);
    start_clock();
  }

  // What may begin now, of what has not: all messages, and one collective at a time.
  std::vector<PendingPtr> take_next() {
    std::vector<PendingPtr> next;
    bool behind = false;
    for (const auto& each : unfinished_) {
      const bool waits = !is_message(each->note().kind) && std::exchange(behind, true);
      if (!waits && !std::exchange(each->begun, true)) next.push_back(each);
    }
    return next;
  }

  // Empty if another thread has taken it out.
  List take_out(const PendingPtr& pending) {
    List taken;
    const auto found = std::ranges::find(unfinished_, pending);
    if (found != unfinished_.end()) taken.splice(taken.begin(), unfinished_, found);
    start_clock(); // of the next: callbacks may last longer than its deadline
    return taken;
  }

  // Takes all out, for ever. The first reason counts.
  List fail(const std::string& reason) {
    if (!failure_) failure_ = reason;
    return take_all();
  }
  List close(const std::string& reason) {
    if (!closed_) closed_ = reason;
    return take_all();
  }

  bool empty() const { return unfinished_.empty(); }
  const std::optional<std::string>& failure() const { return failure_; }
  const std::optional<std::string>& closed() const { return closed_; }
  // Whether the other ranks have yet to learn of the failure.
  bool must_tell() const { return failure_ && !told_; }
  void set_told() { told_ = true; }
  bool has_work() const { return !empty() || must_tell(); }

  template <class Counts>
  bool has(const Counts& counts) const {
    return std::ranges::any_of(
        unfinished_, [&](const auto& each) { return counts(each->note().kind); });
  }

  // Of the first collective, from when it is the first.
  Clock::time_point deadline() const { return deadline_; }
  // The collective whose time is over, or null.
  PendingPtr late(Clock::time_point now) const {
    if (now < deadline_ || deadline_ == kNever) return nullptr;
    return *std::ranges::find(unfinished_, deadline_, &Pending::deadline);
  }

 private:
  void start_clock() {
    deadline_ = kNever;
    const auto is_collective = [](const auto& x) {
      return !is_message(x->note().kind);
    };
    const auto first = std::ranges::find_if(unfinished_, is_collective);
    if (first == unfinished_.end()) return;
    auto& deadline = (*first)->deadline;
    if (deadline == kNever) deadline = in((*first)->arguments->timeout);
    deadline_ = deadline;
  }

  List take_all() {
    auto all = std::exchange(unfinished_, {});
    start_clock();
    return all;
  }

  List unfinished_;
  Clock::time_point deadline_ = kNever;
  std::optional<std::string> failure_, closed_;
  bool told_ = false;
};

} // namespace frame
