#pragma once

#include <deque>
#include <future>
#include <list>
#include <thread>

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "transport.hpp"

namespace frame {

// [call]
// Something that a library has been asked to do. The library may use its memory until it
// is done, also if the operation fails before, so the call owns that memory.
class Call {
 public:
  explicit Call(std::shared_ptr<Bell> bell) : bell_(std::move(bell)) {}
  virtual ~Call() = default;

  bool done() const { return done_; }
  // What went wrong, once it is done.
  const std::string& error() const { return error_; }

 private:
  friend class Library;

  // The thread of the library alone calls these. They never wait for another rank.
  virtual void begin() = 0;
  virtual bool has_ended() = 0;

  template <class Step>
  void advance(const Step& step) {
    try {
      if (!step()) return;
    } catch (const std::exception& error) {
      error_ = error.what();
    }
    done_ = true;
    bell_->ring();
  }

  const std::shared_ptr<Bell> bell_;
  std::atomic<bool> done_{false};
  std::string error_;
};
// [/call]

using CallPtr = std::shared_ptr<Call>;

// [library]
// The thread that makes all calls of a library in this process. It waits for other ranks
// only in run(). Should the library not return, operations still end at their deadlines,
// because other threads enforce these.
//
// It is never destroyed: the thread may be inside of the library at the end of the process.
class Library {
 public:
  explicit Library(std::string name) : name_(std::move(name)) {
    std::thread thread([this] { serve(); });
    pthread_setname_np(thread.native_handle(), name_.c_str());
    thread.detach();
  }

  // Runs a function on the thread. Throws what it throws, or that it takes too long, or
  // what look() throws meanwhile.
  void run(
      std::function<void()> function, Clock::time_point limit, const char* what,
      const std::function<void()>& look = [] {}) {
    if (getpid() != process_) {
      throw std::runtime_error(name_ +
          " runs in the parent of this process, and not in a "
          "fork; start ranks with torchrun or the method \"spawn\"");
    }
    const auto task = std::make_shared<std::packaged_task<void()>>(std::move(function));
    auto result = task->get_future();
    add([task] { (*task)(); });
    const auto soon = [&] { return std::min(limit, Clock::now() + kEvery); };
    while (result.wait_until(soon()) != std::future_status::ready) {
      look();
      if (Clock::now() < limit) continue;
      throw std::runtime_error(name_ + " could not " + what + " in time");
    }
    result.get();
  }

  void begin(CallPtr call) {
    add([this, call = std::move(call)] {
      call->advance([&] {
        call->begin();
        return false;
      });
      calls_.push_back(call);
    });
  }

  void add(std::function<void()> job) {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
    added_.notify_one();
  }
  // [/library]

 private:
  // [serve]
  void serve() {
    auto since = Clock::now(); // when anything last moved
    for (int looks = 0;; ++looks) {
      bool moved = run_jobs(looks, since);
      const auto before = Clock::now();
      std::erase_if(calls_, [&](const CallPtr& call) {
        const bool left_behind =
            call.use_count() == 1; // by an operation that has failed
        if (!left_behind && !call->done())
          call->advance([&] { return call->has_ended(); });
        // The library may still use the memory of such a call, and of one that failed.
        if (left_behind || !call->error().empty()) keep(call);
        moved |= call->done();
        return left_behind || call->done();
      });
      const auto now = Clock::now();
      // A look that takes so long has copied data.
      if (moved || now - before > kShortLook) looks = 0, since = now;
    }
  }

  // For ever: to let go of a tensor may also take Python, which may have ended.
  static void keep(const CallPtr& call) { new CallPtr(call); }

  // Nothing wakes this thread when another rank has sent something. So it looks again at
  // once, then lets others run between its looks, and at last naps, but only for so long
  // that a rank of a busy machine is not held up.
  bool run_jobs(int looks, Clock::time_point since) {
    std::unique_lock lock(mutex_);
    const auto called = [this] { return !jobs_.empty(); };
    if (calls_.empty()) {
      added_.wait(lock, called);
    } else if (looks > kSpins && !called()) {
      const auto idle = std::chrono::duration_cast<microseconds>(Clock::now() - since);
      if (idle > kYieldFor) {
        added_.wait_for(lock, std::min(idle / 8, kLongestNap), called);
      } else {
        lock.unlock();
        sched_yield();
        lock.lock();
      }
    }
    const auto jobs = std::exchange(jobs_, {});
    lock.unlock();
    for (const auto& job : jobs) job();
    return !jobs.empty();
  }
  // [/serve]

  static constexpr milliseconds kEvery{50}; // looks of the caller of run()
  static constexpr int kSpins = 100; // looks
  static constexpr microseconds kShortLook{20};
  static constexpr microseconds kYieldFor{500}, kLongestNap{1000};

  const std::string name_;
  const pid_t process_ = getpid(); // which has the thread
  std::mutex mutex_;
  std::condition_variable added_;
  std::deque<std::function<void()>> jobs_;
  std::list<CallPtr> calls_; // of the thread alone
};

} // namespace frame
