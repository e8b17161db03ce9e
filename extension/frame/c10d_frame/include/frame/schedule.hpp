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

  // Behind the others; before them if at_once() has begun it. Throws, if at all, before
  // anything has changed.
  void add(List&& one, bool has_begun) {
    const PendingPtr pending = one.front();
    const bool is_collective = !is_message(pending->note().kind);
    List collective(is_collective ? 1 : 0, pending), next(1, pending);
    const auto put = [&](List& list, List& added) {
      list.splice(has_begun ? list.begin() : list.end(), added);
    };
    // The clock of the one that is no longer the first begins again.
    if (!collective.empty() && has_begun && !collectives_.empty())
      collectives_.front()->deadline = kNever;
    put(unfinished_, one);
    put(collectives_, collective);
    if (!is_collective || collectives_.front() == pending) put(next_, next);
    start_clock();
  }

  // What may begin now, of what has not: all messages, and one collective at a time.
  List take_next() {
    auto next = std::exchange(next_, {});
    std::erase_if(next, [this](const auto& each) { // at_once() has begun another one
      return !is_message(each->note().kind) && each != collectives_.front();
    });
    return next;
  }

  // Empty if another thread has taken it out.
  List take_out(const PendingPtr& pending) {
    List taken;
    const auto found = std::ranges::find(unfinished_, pending);
    if (found != unfinished_.end()) taken.splice(taken.begin(), unfinished_, found);
    if (!collectives_.empty() && collectives_.front() == pending) {
      collectives_.pop_front();
      if (!collectives_.empty()) next_.push_back(collectives_.front());
    }
    start_clock(); // of the next: callbacks may last longer than its deadline
    set_ending(taken.size());
    return taken;
  }
  // How many have been taken out, or refused, and have not ended.
  void set_ending(size_t count) { ending_ += count; }
  void set_ended(size_t count) { ending_ -= count; }
  bool is_ending() const { return ending_ > 0; }

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
    return collectives_.front();
  }

 private:
  void start_clock() {
    deadline_ = kNever;
    if (collectives_.empty()) return;
    Pending& first = *collectives_.front();
    if (first.deadline == kNever) first.deadline = in(first.arguments->timeout);
    deadline_ = first.deadline;
  }

  List take_all() {
    auto all = std::exchange(unfinished_, {});
    set_ending(all.size());
    collectives_.clear();
    next_.clear();
    start_clock();
    return all;
  }

  // Many may be open: nothing here goes through all of them.
  List unfinished_;
  List collectives_, next_; // those of them, and what may begin
  size_t ending_ = 0; // have been taken out, and have not ended
  Clock::time_point deadline_ = kNever;
  std::optional<std::string> failure_, closed_;
  bool told_ = false;
};

} // namespace frame
