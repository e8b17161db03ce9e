#pragma once

#include <deque>

#include "operation.hpp"

namespace shm_collectives {

// The callbacks of the program whose operations have ended. One follows another in
// the order of these ends, so that what they call has the same order on all ranks.
// But a callback may wait for a later one, which is then called at once if it has asked
// for it itself, and otherwise as soon as the one before has taken long. The mutex
// of the owner guards all of this but due() and are_due().
class Callbacks {
 public:
  // The callbacks of one operation.
  struct Turn {
    OperationPtr operation;
    Clock::time_point began; // kNever if others need not wait for it
  };

  // The callback that this thread is in, of whichever group; null in none. It is
  // destroyed with its end.
  static const std::shared_ptr<void>& current() { return current_; }

  // Once Python exits, threads stay here, except in callbacks.
  static void keep_at_exit() {
    if (!current()) PythonExit::keep_other_threads();
  }

  bool empty() const { return in_order_.empty() && urgent_.empty(); }
  // From when on the next ones may be called; max if there are none.
  Clock::time_point due() const { return due_.load(); }
  bool are_due() const {
    const auto due = this->due();
    return due != Clock::time_point::max() && Clock::now() >= due;
  }
  // The time at which the callbacks began that others wait for; kNever if there are
  // none.
  Clock::time_point began() const { return began_; }

  // Whether what this thread wants to be called has to wait for others.
  bool go_first() const { return !current() && (!empty() || began_ != kNever); }

  void add(const OperationPtr& operation) {
    (operation->urgent() ? urgent_ : in_order_).push_back(operation);
    schedule();
  }

  Turn begin_next() {
    auto& queue = urgent_.empty() ? in_order_ : urgent_;
    Turn turn{std::move(queue.front()), kNever};
    queue.pop_front();
    if (&queue == &in_order_) turn.began = began_ = Clock::now();
    schedule();
    return turn;
  }

  // Call this without the mutex: callbacks may do anything.
  static void call(OperationPtr operation) {
    const auto outer = std::exchange(current_, std::make_shared<char>());
    operation->call_back();
    operation.reset(); // with it may go the last tensors, and what they hold
    current_ = outer;
  }

  void end(const Turn& turn) {
    if (turn.began != began_) return; // others did not wait, or not until now
    began_ = kNever;
    schedule();
  }

 private:
  static constexpr auto kNever = Clock::time_point::min();
  // a callback that takes this time may wait for others
  static constexpr milliseconds kLong{500};

  void schedule() {
    due_ = in_order_.empty() ? Clock::time_point::max() : began_ + kLong;
    if (!urgent_.empty()) due_ = kNever;
  }

  static inline thread_local std::shared_ptr<void> current_;

  std::deque<OperationPtr> in_order_, urgent_;
  Clock::time_point began_ = kNever;
  std::atomic<Clock::time_point> due_{Clock::time_point::max()};
};

} // namespace shm_collectives
