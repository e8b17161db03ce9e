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
  static void because(const std::string& reason) {
    const std::lock_guard lock(mutex_);
    if (!reason_.empty()) return;
    reason_ = reason;
    since_ = Clock::now();
  }
  [[noreturn]] static void forever(const std::string& reason) {
    because(reason);
    while (true) ::pause();
  }
  // The reason, once it has been known for this time.
  static std::optional<std::string> reason(std::chrono::milliseconds time) {
    const std::lock_guard lock(mutex_);
    if (reason_.empty() || Clock::now() < since_ + time) return std::nullopt;
    return reason_;
  }

 private:
  static inline std::mutex mutex_;
  static inline std::string reason_;
  static inline Clock::time_point since_;
};
// [/stuck]

} // namespace mpi_collectives
