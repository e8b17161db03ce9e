#pragma once

// The time of the tests of the frame: frame/time.hpp includes this instead of its own. It
// stands still as long as any thread works. When all sleep, it moves to the first limit
// at which one of them wakes. So a deadline passes at once, and everything that can happen
// before it has happened. If no limit is left, the threads would sleep for ever: then the
// process says so and ends.

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

namespace frame {

struct Clock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<Clock>;
  static constexpr bool is_steady = true;
  static time_point now();
};

class Condition;

// All threads of the frame and of the test, and when those that sleep are to wake.
class MovedTime {
 public:
  static MovedTime& get() { // never destroyed: threads may outlive the test
    static auto& time = *new MovedTime();
    return time;
  }

  Clock::time_point now() const {
    return Clock::time_point(Clock::duration(now_.load(std::memory_order_relaxed)));
  }

  // Unlocks while it sleeps; without a condition, only the limit wakes it. A limit that is
  // over wakes it when all others sleep.
  std::cv_status sleep(std::unique_lock<std::mutex>* lock, const Condition* condition,
      Clock::time_point limit) {
    Sleeper me(condition, limit);
    std::unique_lock guard(mutex_);
    if (lock != nullptr) lock->unlock(); // a notification after that finds the sleeper
    sleepers_.push_back(&me);
    fall_asleep();
    me.wakes.wait(guard, [&] { return me.is_awake; });
    guard.unlock();
    if (lock != nullptr) lock->lock();
    return me.is_late ? std::cv_status::timeout : std::cv_status::no_timeout;
  }

  void notify(const Condition* condition, bool all) {
    const std::lock_guard guard(mutex_);
    for (auto each = sleepers_.begin(); each != sleepers_.end();) {
      if ((*each)->condition != condition) {
        ++each;
        continue;
      }
      wake(each++, /*late=*/false);
      if (!all) return;
    }
  }

  // Throws if the test wants no more threads.
  void add_thread() {
    const std::lock_guard guard(mutex_);
    if (threads_left_-- <= 0) {
      threads_left_ = 0;
      throw std::system_error(
          std::make_error_code(std::errc::resource_unavailable_try_again));
    }
    ++threads_;
    ++awake_;
  }
  void remove_thread() {
    const std::lock_guard guard(mutex_);
    --threads_;
    fall_asleep();
  }
  int threads() const {
    const std::lock_guard guard(mutex_);
    return threads_;
  }
  void allow_threads(int count) {
    const std::lock_guard guard(mutex_);
    threads_left_ = count;
  }
  static constexpr int kAnyNumber = 1 << 30;

 private:
  struct Sleeper {
    Sleeper(const Condition* condition, Clock::time_point limit)
        : condition(condition), limit(limit) {}
    const Condition* const condition;
    const Clock::time_point limit;
    bool is_awake = false, is_late = false;
    pthread_t thread = pthread_self();
    std::condition_variable wakes;
  };
  using Sleepers = std::list<Sleeper*>;

  // The mutex is held in the following.
  void wake(Sleepers::iterator which, bool late) {
    Sleeper& sleeper = **which;
    sleepers_.erase(which);
    ++awake_; // at once, so that the time does not move before it runs
    sleeper.is_awake = true;
    sleeper.is_late = late;
    sleeper.wakes.notify_one();
  }

  void fall_asleep() {
    if (--awake_ > 0 || sleepers_.empty()) return;
    auto first = Clock::time_point::max();
    for (const auto* each : sleepers_) first = std::min(first, each->limit);
    if (first > now() + kFar) end_process("no limit wakes them");
    standing_ = first > now() ? 0 : standing_ + 1;
    if (standing_ > kBusy) end_process("they only wake each other");
    if (first > now()) now_.store(first.time_since_epoch().count());
    for (auto each = sleepers_.begin(); each != sleepers_.end();) {
      const auto next = std::next(each);
      if ((*each)->limit <= now()) wake(each, /*late=*/true);
      each = next;
    }
  }

  [[noreturn]] void end_process(const char* why) const {
    std::fprintf(stderr, "All threads sleep, and %s:", why);
    for (const auto* each : sleepers_) {
      char name[16] = "?";
      pthread_getname_np(each->thread, name, sizeof(name));
      std::fprintf(stderr, " %s", name);
    }
    std::fprintf(stderr, "\n");
    std::abort();
  }

  static constexpr auto kFar = std::chrono::hours(24 * 365 * 50);
  static constexpr int kBusy = 1'000'000; // times that the time stands still in a row

  mutable std::mutex mutex_;
  std::atomic<Clock::rep> now_{1'000'000'000};
  int awake_ = 1, threads_ = 0; // the first thread of the process is awake
  int threads_left_ = kAnyNumber;
  int standing_ = 0;
  Sleepers sleepers_;
};

inline Clock::time_point Clock::now() { return MovedTime::get().now(); }

inline void sleep_until(Clock::time_point limit) {
  MovedTime::get().sleep(nullptr, nullptr, limit);
}
// A thread that does so works on when all others sleep.
inline void yield() { sleep_until(Clock::now() + std::chrono::microseconds(1)); }

// As std::condition_variable.
class Condition {
  using Lock = std::unique_lock<std::mutex>;

 public:
  void notify_one() { MovedTime::get().notify(this, false); }
  void notify_all() { MovedTime::get().notify(this, true); }

  void wait(Lock& lock) { wait_until(lock, Clock::time_point::max()); }
  template <class Done>
  void wait(Lock& lock, const Done& done) {
    while (!done()) wait(lock);
  }
  std::cv_status wait_until(Lock& lock, Clock::time_point limit) {
    return MovedTime::get().sleep(&lock, this, limit);
  }
  template <class Done>
  bool wait_until(Lock& lock, Clock::time_point limit, const Done& done) {
    while (!done()) {
      if (wait_until(lock, limit) == std::cv_status::timeout) return done();
    }
    return true;
  }
  template <class Done>
  bool wait_for(Lock& lock, Clock::duration time, const Done& done) {
    return wait_until(lock, Clock::now() + time, done);
  }
};

// As std::thread. It counts as awake from its construction on.
class Thread {
 public:
  Thread() = default;
  explicit Thread(std::function<void()> function) : state_(std::make_shared<State>()) {
    MovedTime::get().add_thread();
    try {
      thread_ = std::thread([state = state_, function = std::move(function)]() mutable {
        function();
        function = nullptr; // lets go of what it owns
        const std::lock_guard lock(state->mutex);
        state->has_ended = true;
        state->ended.notify_all();
        MovedTime::get().remove_thread();
      });
    } catch (...) {
      MovedTime::get().remove_thread();
      throw;
    }
  }

  void join() { // asleep, until it has only to return
    std::unique_lock lock(state_->mutex);
    state_->ended.wait(lock, [this] { return state_->has_ended; });
    lock.unlock();
    thread_.join();
  }
  void detach() { thread_.detach(); }
  bool joinable() const { return thread_.joinable(); }
  auto native_handle() { return thread_.native_handle(); }

 private:
  struct State {
    std::mutex mutex;
    Condition ended;
    bool has_ended = false;
  };
  std::shared_ptr<State> state_;
  std::thread thread_;
};

} // namespace frame
