#pragma once

#include <functional>
#include <mutex>
#include <optional>

#include "call.hpp"

namespace shm_collectives {

// One call, from its submission to its end.
class Operation {
 public:
  Operation(Call call, Steps steps) : call(std::move(call)), steps(std::move(steps)) {}

  bool ended() const { return ended_.load(); }
  // The error; null if there is none.
  std::exception_ptr error() const { return ended() ? problem : nullptr; }

  // Says that it has ended; true if it has callbacks of the program.
  bool end() {
    const std::lock_guard lock(mutex_);
    ended_.store(true);
    return !callbacks_.empty();
  }

  // Keeps a callback of the program; false if the operation has ended, unless
  // `always`. The asker is the callback that asks for it, if one does.
  bool keep(
      std::function<void()> callback, const std::weak_ptr<void>& asker, bool always) {
    const std::lock_guard lock(mutex_);
    if (ended() && !always) return false;
    callbacks_.push_back(std::move(callback));
    if (!asker.expired()) asker_ = asker;
    return true;
  }
  // Whether a callback that has not ended may wait for those that are kept.
  bool urgent() const { return !asker_.expired(); }

  // Call these two without any mutex: callbacks may wait for Python.
  void call_back() { call_all(callbacks_); }
  void call_at_end() { call_all(at_end_); }

  // Calls `callback` on the thread that ends the operation. It must be short.
  void at_end(std::function<void()> callback) {
    std::unique_lock lock(mutex_);
    if (!ended()) return at_end_.push_back(std::move(callback));
    lock.unlock();
    callback();
  }

  const Call call;
  // For the thread that drives the operations:
  Steps steps;
  std::optional<Clock::time_point> deadline; // from the first step on
  std::exception_ptr problem;
  bool done = false;

 private:
  using List = std::vector<std::function<void()>>;
  void call_all(List& list) {
    std::unique_lock lock(mutex_);
    const auto callbacks = std::exchange(list, {});
    lock.unlock();
    for (const auto& callback : callbacks) callback();
  }

  std::atomic<bool> ended_{false};
  std::mutex mutex_;
  List callbacks_, at_end_;
  std::weak_ptr<void> asker_;
};

using OperationPtr = std::shared_ptr<Operation>;
using Operations = std::vector<OperationPtr>;

} // namespace shm_collectives
