#pragma once

#include "device.hpp"

#include "options.hpp"

namespace streams {

constexpr auto kNoStream = std::numeric_limits<c10::StreamId>::min();

using frame::Clock;

// The calls of a group that were launched together, as their stream and the watchdog see
// them. It has no tensor, so its end needs nothing of Python.
struct Launch {
  std::string title; // "Backend acme: all_reduce #3 of ..."
  milliseconds timeout{0};
  bool has_collective = false;
  device::Event begin{device::kType}, end{device::kType}; // the stream reaches them
  std::atomic<c10::StreamId> waiting{kNoStream}; // the program's stream, after wait()

  bool ended() const { return end.query(); } // throws after an error of the device
  bool surely_ended() const {
    try {
      return ended();
    } catch (...) {
      return false;
    }
  }
  // Only the watchdog asks. The clock starts when it first sees that the launch has begun.
  bool late() {
    if (ended() || !begin.query()) return false;
    if (!began_) began_ = Clock::now();
    return Clock::now() - *began_ > countable(timeout);
  }
  bool is_waited_for_by(c10::StreamId stream) const {
    return stream != kNoStream && stream == waiting;
  }
  // Other ranks need a collective. The program needs what it waits for: on the CPU, it would
  // not have come back from that wait.
  bool is_needed() const { return has_collective || waiting != kNoStream; }
  // Why it failed; empty if it has not. A copy, because another thread may set it.
  std::string error() const {
    const std::lock_guard lock(mutex_);
    return error_;
  }
  bool failed() const { return !error().empty(); }
  void fail(const std::string& reason) { // the first reason counts
    const std::lock_guard lock(mutex_);
    if (error_.empty() && !surely_ended()) error_ = title + ": " + reason;
  }

 private:
  std::optional<Clock::time_point> began_;
  mutable std::mutex mutex_;
  std::string error_;
};
using LaunchPtr = std::shared_ptr<Launch>;

} // namespace streams
