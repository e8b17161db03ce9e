#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>
#include <optional>

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "frame/transport.hpp"

namespace shm_collectives {

using frame::Clock, std::chrono::microseconds;

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

// Lets the threads of one rank sleep until something happens. It is in shared memory,
// so that every rank can ring it.
//
// Memory order: one side posts (writes a counter) and then looks for sleepers;
// the other side announces its sleep and then looks at the counter. At least
// one of the two must see the other. Only sequentially consistent accesses
// promise that, so the counters and these fields use nothing weaker.
class Bell {
 public:
  // [bell]
  // Call this after writing what the sleepers wait for.
  void ring() {
    if (has_sleepers()) {
      rings_.fetch_add(1);
      syscall(SYS_futex, &rings_, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
    }
  }

  bool has_sleepers() const { return sleepers_.load() > 0; }

  // Announces a sleep for as long as it exists. Look once more between creating
  // it and calling wait_for(): a post in between makes wait_for() return.
  class Sleep {
   public:
    explicit Sleep(Bell& bell) : bell_(bell) {
      bell_.sleepers_.fetch_add(1);
      rings_ = bell_.rings_.load();
    }
    ~Sleep() { bell_.sleepers_.fetch_sub(1); }

    void wait_for(microseconds time) {
      const timespec limit{time.count() / 1000000, time.count() % 1000000 * 1000};
      // Returns at once if the bell has rung since rings_ was read.
      syscall(SYS_futex, &bell_.rings_, FUTEX_WAIT, rings_, &limit, nullptr, 0);
    }
    // [/bell]

   private:
    Bell& bell_;
    uint32_t rings_;
  };

 private:
  std::atomic<uint32_t> rings_;
  std::atomic<uint32_t> sleepers_;
};

// [policy]
// How a rank waits. Spinning is for ranks that can all run at the same time; if they
// cannot, a rank yields to the others. But Linux gives processor time to sessions, and
// only then to the processes in each (autogroup): a rank that yields does not let one of
// another session run.
struct WaitingPolicy {
  WaitingPolicy(bool fit, bool one_session, std::optional<microseconds> yield_for)
      : spins(fit ? 100 : 0),
        yield_for(std::min(
            yield_for.value_or(microseconds(fit || one_session ? 500 : 0)), kLongest)) {
  }

  static constexpr microseconds kLongest = std::chrono::hours(24); // more overflows
  int spins;
  microseconds yield_for; // and then sleep
};
// [/policy]

// The rest of a thread after a look: it spins as long as the answer of a running rank
// takes, then lets other threads run, then goes to sleep. Returns whether it has looked
// once more, and found something.
// [patience]
inline bool rest(const frame::Idle& idle, const WaitingPolicy& policy, Bell& bell,
    Clock::time_point limit, const std::function<bool()>& look) {
  if (idle.looks < policy.spins) {
    relax();
    return false;
  }
  const auto now = Clock::now();
  if (now - idle.since < policy.yield_for) {
    sched_yield();
    return false;
  }
  Bell::Sleep sleep(bell);
  if (look()) return true;
  const auto time = std::chrono::duration_cast<microseconds>(limit - Clock::now());
  if (time.count() > 0) sleep.wait_for(time);
  return false;
}
// [/patience]

} // namespace shm_collectives
