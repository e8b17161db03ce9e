#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <thread>

// The clock that the frame reads, and all by which it waits. Its tests replace them by
// such that they move themselves: see tests/frame/moved_time.hpp.
#ifdef C10D_FRAME_TIME
#include C10D_FRAME_TIME
#else
namespace frame {

using Clock = std::chrono::steady_clock;
using Condition = std::condition_variable;
using Thread = std::thread;

inline void sleep_until(Clock::time_point limit) {
  std::this_thread::sleep_until(limit);
}
inline void yield() { std::this_thread::yield(); }

} // namespace frame
#endif

namespace frame {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// The longest timeout: clocks count nanoseconds in 64 bits, which last for 292 years.
constexpr milliseconds kLongest = std::chrono::hours(24 * 365 * 100);
inline const Clock::time_point kNever = Clock::now() + kLongest;

inline Clock::time_point in(milliseconds time) {
  return Clock::now() + std::clamp(time, milliseconds(0), kLongest);
}

} // namespace frame
