#pragma once

#include <condition_variable>
#include <system_error>
#include <thread>
#include <vector>

#include <c10/util/Exception.h>
#include <c10/util/thread_name.h>

#include "waiting.hpp"

namespace shm_collectives {

// The threads of one group of this process, created when they are needed. The
// mutex of the owner guards all of this.
class Threads {
 public:
  using Lock = std::unique_lock<std::mutex>;

  // Wakes one that rests; false if there is none.
  bool wake() {
    if (resting_ == 0) return false;
    wake_.notify_one();
    return true;
  }

  // Starts one, which calls `serve`, if the system has room for another.
  template <class Serve>
  void start(std::mutex& mutex, Serve serve) {
    try {
      std::thread thread([this, &mutex, serve = std::move(serve)] {
        c10::setThreadName("shm_progress");
        is_current_ = true;
        Lock lock(mutex);
        --resting_;
        serve(lock);
        if (--serving_ == 0) none_.notify_all();
      });
      ending_ ? thread.detach() : threads_.push_back(std::move(thread));
      ++serving_;
      ++resting_;
    } catch (const std::system_error& error) {
      TORCH_WARN_ONCE(
          "Backend shm cannot start a thread, so that operations get on only while "
          "somebody waits for one: ",
          error.what());
    }
  }

  // Returns at that time, or when this thread is woken, or for no reason.
  void rest(Lock& lock, Clock::time_point until) {
    ++resting_;
    wake_.wait_until(lock, std::min(until, in(std::chrono::hours(1))));
    --resting_;
  }

  bool none() const { return serving_ == 0; }
  // Whether this is the thread of a group: then no group may wait for it here.
  static bool is_current() { return is_current_; }

  // Lets all of them look for what is left to do.
  bool ending() const { return ending_; }
  void end() {
    ending_ = true;
    wake_.notify_all();
  }

  // Waits until all have ended, or for that time.
  void join(Lock& lock, milliseconds limit) {
    none_.wait_until(lock, in(limit), [this] { return none(); });
    auto threads = std::exchange(threads_, {});
    const bool join = none();
    lock.unlock();
    for (auto& thread : threads) join ? thread.join() : thread.detach();
  }
  static constexpr auto kNoLimit = milliseconds::max();

 private:
  static inline thread_local bool is_current_ = false;

  std::vector<std::thread> threads_;
  int serving_ = 0, resting_ = 0; // of all, also those that are not in the list
  std::atomic<bool> ending_{false};
  std::condition_variable wake_, none_;
};

} // namespace shm_collectives
