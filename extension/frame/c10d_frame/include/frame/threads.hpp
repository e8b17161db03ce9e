#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <system_error>
#include <vector>

#include <c10/util/thread_name.h>

#include "time.hpp"

namespace frame {

// What to say where a thread cannot be started.
inline std::string shortage_of_threads(const std::system_error& error) {
  return "cannot start a thread: " + error.code().message() +
      " (see the limits of this user, ulimit -u, and of the container)";
}

// Threads that own what they use, so that they can be left alone when they do not end.
class Threads {
 public:
  // Throws std::system_error if there are too many threads.
  void add(const std::string& name, std::function<void()> serve) {
    const std::lock_guard lock(state_->mutex);
    threads_.emplace_back([state = state_, name, serve = std::move(serve)]() mutable {
      c10::setThreadName(name.substr(0, 15)); // the limit of Linux
      inside_ = true;
      serve();
      serve = nullptr; // lets go of what it owns
      const std::lock_guard lock(state->mutex);
      --state->running;
      state->ended.notify_all();
    });
    ++state_->running; // none if it could not be started; it cannot end before
  }

  // Joins the threads, if all end in time; otherwise they go on alone, and so does one of
  // them that calls this. None waits for others: two could wait for each other.
  void join(Clock::time_point limit) {
    std::unique_lock lock(state_->mutex);
    const auto none = [this] { return state_->running == 0; };
    const bool join = !inside_ && state_->ended.wait_until(lock, limit, none);
    auto threads = std::exchange(threads_, {});
    lock.unlock();
    for (auto& thread : threads) join ? thread.join() : thread.detach();
  }

 private:
  struct State {
    std::mutex mutex;
    Condition ended;
    int running = 0;
  };

  static inline thread_local bool inside_ =
      false; // one of these threads, of any object

  const std::shared_ptr<State> state_ = std::make_shared<State>();
  std::vector<Thread> threads_;
};

} // namespace frame
