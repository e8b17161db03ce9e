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
  // What went wrong; null if nothing did.
  std::exception_ptr error() const { return ended() ? error_ : nullptr; }

  void end(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    error_ = std::move(error);
    ended_.store(true);
  }

  // Calls `callback` at the end, or at once if it has ended, without any lock: on
  // the thread that has brought the operation to its end, whichever that is.
  void when_ended(std::function<void()> callback) {
    std::unique_lock lock(mutex_);
    if (!ended()) return callbacks_.push_back(std::move(callback));
    lock.unlock();
    callback();
  }

  std::vector<std::function<void()>> take_callbacks() {
    const std::lock_guard lock(mutex_);
    return std::exchange(callbacks_, {});
  }

  const Call call;
  // Only whoever drives the operations uses these:
  Steps steps;
  std::optional<Clock::time_point> deadline; // from the first step on

 private:
  std::atomic<bool> ended_{false};
  std::exception_ptr error_;
  std::mutex mutex_;
  std::vector<std::function<void()>> callbacks_;
};

using OperationPtr = std::shared_ptr<Operation>;
using Operations = std::vector<OperationPtr>;

} // namespace shm_collectives
