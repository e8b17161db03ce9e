#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string>

#include <unistd.h>

namespace mpi_collectives {

// [stuck]
// Why the thread of MPI never returns, for the threads that wait for it.
class Stuck {
  using Clock = std::chrono::steady_clock;

 public:
  enum Cause { kHere, kPerhapsElsewhere }; // such as the death of another rank

  static void because(const std::string& reason, Cause cause) {
    const std::lock_guard lock(mutex_);
    if (!reason_.empty()) return;
    reason_ = reason;
    if (cause == kPerhapsElsewhere) since_ = Clock::now();
  }
  [[noreturn]] static void forever(const std::string& reason, Cause cause) {
    because(reason, cause);
    while (true) ::pause();
  }
  // The reason, after this time if the cause may become known elsewhere.
  static std::optional<std::string> reason(std::chrono::milliseconds time) {
    const std::lock_guard lock(mutex_);
    if (reason_.empty() || Clock::now() < since_ + time) return std::nullopt;
    return reason_;
  }

 private:
  static inline std::mutex mutex_;
  static inline std::string reason_;
  static inline Clock::time_point since_; // of another cause
};
// [/stuck]

} // namespace mpi_collectives
