#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <list>
#include <mutex>
#include <thread>

#include <mpi.h>
#include <pthread.h>
#include <sched.h>

#include "frame/transport.hpp"

namespace mpi_collectives {

using frame::Bell, frame::Clock, frame::microseconds;

// [check]
// Throws the text that MPI has for an error.
inline void check(int error, const char* function) {
  if (error == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(error, text, &length);
  throw std::runtime_error(std::string(function) + ": " + std::string(text, length));
}
// [/check]

// [call]
// One or several requests of MPI that belong together. MPI may use their memory until they
// are done, so the function that posts them owns it.
class Call {
 public:
  using Post = std::function<void(std::vector<MPI_Request>&)>;

  Call(std::shared_ptr<Bell> bell, size_t requests, Post post)
      : bell_(std::move(bell)),
        post_(std::move(post)),
        requests_(requests, MPI_REQUEST_NULL),
        statuses_(requests),
        open_(requests) {}

  bool done() const { return done_; }
  size_t requests() const { return requests_.size(); }
  // Whether request i goes on, so that an error can name the rank that it waits for.
  bool open(size_t i) const { return open_[i]; }
  const MPI_Status& status(size_t i) const { return statuses_[i]; }
  // What went wrong, once it is done.
  const std::string& error() const { return error_; }
  // [/call]

 private:
  friend class Library;

  // The thread of MPI alone calls these.
  void begin() {
    try {
      post_(requests_);
      for (size_t i = 0; i < requests_.size(); ++i) {
        open_[i] = requests_[i] != MPI_REQUEST_NULL;
      }
    } catch (const std::exception& error) {
      end(error.what());
    }
  }

  // [test]
  // Returns whether anything got on.
  bool test() {
    bool moved = false, all = true;
    try {
      for (size_t i = 0; i < requests_.size(); ++i) {
        int ended = 0;
        if (!open_[i]) continue;
        check(MPI_Test(&requests_[i], &ended, &statuses_[i]), "MPI_Test");
        if (ended) open_[i] = false, moved = true;
        all &= ended != 0;
      }
      if (all) end("");
    } catch (const std::exception& error) {
      end(error.what());
    }
    return moved || done_;
  }
  // [/test]

  void end(const std::string& error) {
    error_ = error;
    done_ = true;
    bell_->ring();
  }

  const std::shared_ptr<Bell> bell_;
  const Post post_;
  std::vector<MPI_Request> requests_;
  std::vector<MPI_Status> statuses_;
  std::deque<std::atomic<char>> open_;
  std::atomic<bool> done_{false};
  std::string error_;
};

using CallPtr = std::shared_ptr<Call>;

// [library]
// The thread that makes all calls of MPI in this process. It waits for other ranks only
// while it starts MPI and creates communicators. Should MPI not return, operations still
// end at their deadlines, because other threads keep these.
class Library {
 public:
  // Never destroyed: the thread may be inside of MPI at the end of the process.
  static Library& get() {
    static auto& library = *new Library();
    return library;
  }

  // Runs a function on the thread. Throws what it throws, or that it takes too long.
  void run(std::function<void()> function, Clock::time_point limit, const char* what) {
    const auto task = std::make_shared<std::packaged_task<void()>>(std::move(function));
    auto result = task->get_future();
    add([task] { (*task)(); });
    if (result.wait_until(limit) != std::future_status::ready) {
      throw std::runtime_error(std::string("MPI could not ") + what + " in time");
    }
    result.get();
  }

  void begin(CallPtr call) {
    add([this, call = std::move(call)] {
      call->begin();
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
  Library() {
    std::thread thread([this] { serve(); });
    pthread_setname_np(thread.native_handle(), "mpi");
    thread.detach();
  }

  // [serve]
  void serve() {
    auto since = Clock::now(); // nothing has moved
    for (int looks = 0;; ++looks) {
      bool moved = run_jobs(looks, since);
      std::erase_if(calls_, [&](const CallPtr& call) {
        const bool left_behind = call.use_count() == 1;
        moved |= call->done() || call->test();
        if (call->done() && left_behind) keep(call);
        return call->done();
      });
      if (moved) looks = 0, since = Clock::now();
    }
  }

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

  // What a failed operation has left behind stays for ever: to let go of a tensor may take
  // Python, which may have ended.
  static void keep(const CallPtr& call) { new CallPtr(call); }

  static constexpr int kSpins = 100; // looks
  static constexpr microseconds kYieldFor{500}, kLongestNap{1000};

  std::mutex mutex_;
  std::condition_variable added_;
  std::deque<std::function<void()>> jobs_;
  std::list<CallPtr> calls_; // of the thread alone
};

} // namespace mpi_collectives
