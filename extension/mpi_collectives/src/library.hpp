#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <mutex>
#include <thread>

#include <mpi.h>
#include <pthread.h>
#include <sched.h>

#include "frame/transport.hpp"

namespace mpi_collectives {

using frame::Bytes, frame::Clock, std::chrono::microseconds;

// Throws the text that MPI has for an error.
inline void check(int error, const char* function) {
  if (error == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(error, text, &length);
  throw std::runtime_error(std::string(function) + ": " + std::string(text, length));
}

// Lets the threads of a group that drive sleep until MPI has got on.
class Bell {
 public:
  void ring() {
    const std::lock_guard lock(mutex_);
    ++rings_;
    changed_.notify_all();
  }
  uint64_t rings() const {
    const std::lock_guard lock(mutex_);
    return rings_;
  }
  void wait(uint64_t heard, Clock::time_point limit) {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, limit, [&] { return rings_ != heard; });
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t rings_ = 0;
};

// One or several requests of MPI that belong together. MPI may use the memory until they
// are done, even after the operation has failed, so this keeps its owner.
class Call {
 public:
  Call(std::shared_ptr<const void> owner, std::shared_ptr<Bell> bell, size_t requests)
      : owner_(std::move(owner)),
        bell_(std::move(bell)),
        requests_(requests, MPI_REQUEST_NULL),
        statuses_(requests),
        open_(new std::atomic<bool>[requests]()) {}
  virtual ~Call() = default;

  bool done() const { return done_; }
  // Whether request i goes on; for an error that names whom it waits for.
  bool open(size_t i) const { return open_[i]; }
  const MPI_Status& status(size_t i) const { return statuses_[i]; }
  // What went wrong, once it is done.
  const std::string& error() const { return error_; }

 private:
  friend class Library;

  // Posts the requests. Both are called by the thread of MPI alone.
  virtual void post(std::vector<MPI_Request>& requests) = 0;

  void begin() {
    try {
      post(requests_);
      for (size_t i = 0; i < requests_.size(); ++i) {
        open_[i] = requests_[i] != MPI_REQUEST_NULL;
      }
    } catch (const std::exception& error) {
      end(error.what());
    }
  }

  // Returns whether anything got on.
  bool test() {
    const auto count = static_cast<int>(requests_.size());
    std::vector<int> which(count);
    std::vector<MPI_Status> statuses(count);
    int ended = 0;
    const int error =
        MPI_Testsome(count, requests_.data(), &ended, which.data(), statuses.data());
    std::string problem;
    for (int i = 0; i < ended && ended != MPI_UNDEFINED; ++i) {
      statuses_[which[i]] = statuses[i];
      open_[which[i]] = false;
      if (error == MPI_ERR_IN_STATUS && statuses[i].MPI_ERROR != MPI_SUCCESS) {
        problem = text_of(statuses[i].MPI_ERROR);
      }
    }
    if (error != MPI_SUCCESS && error != MPI_ERR_IN_STATUS) problem = text_of(error);
    const bool all = std::ranges::all_of(
        requests_, [](MPI_Request request) { return request == MPI_REQUEST_NULL; });
    if (all || !problem.empty()) end(problem);
    return ended != 0 || done_;
  }

  void end(const std::string& error) {
    error_ = error;
    done_ = true;
    bell_->ring();
  }

  static std::string text_of(int code) {
    try {
      check(code, "MPI");
    } catch (const std::exception& error) {
      return error.what();
    }
    return "";
  }

  std::shared_ptr<const void> owner_;
  std::shared_ptr<Bell> bell_;
  std::vector<MPI_Request> requests_;
  std::vector<MPI_Status> statuses_;
  std::unique_ptr<std::atomic<bool>[]> open_;
  std::atomic<bool> done_{false};
  std::string error_;
};

// The thread that makes all calls of MPI in this process. It waits for nobody inside of
// MPI, except while it starts MPI and creates communicators: should MPI not come back,
// operations still end at their deadlines, because their threads wait for this one.
class Library {
 public:
  // Never destroyed: it may be stuck in MPI at the end of the process.
  static Library& get() {
    static auto& library = *new Library();
    return library;
  }

  // Runs a function on the thread. Throws what it throws, or that it takes too long.
  void run(std::function<void()> function, Clock::time_point limit, const char* what) {
    struct Result {
      std::mutex mutex;
      std::condition_variable ended;
      bool done = false;
      std::exception_ptr error;
    };
    const auto result = std::make_shared<Result>();
    add([function = std::move(function), result] {
      std::exception_ptr error;
      try {
        function();
      } catch (...) {
        error = std::current_exception();
      }
      const std::lock_guard lock(result->mutex);
      result->error = error;
      result->done = true;
      result->ended.notify_all();
    });
    std::unique_lock lock(result->mutex);
    if (!result->ended.wait_until(lock, limit, [&] { return result->done; })) {
      throw std::runtime_error(std::string("MPI has not ended ") + what + " in time");
    }
    if (result->error) std::rethrow_exception(result->error);
  }

  void add(std::function<void()> job) {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
    called_.notify_one();
  }

  void begin(std::shared_ptr<Call> call) {
    add([this, call = std::move(call)] {
      call->begin();
      if (!call->done()) calls_.push_back(call);
    });
  }

 private:
  Library() {
    std::thread thread([this] { serve(); });
    pthread_setname_np(thread.native_handle(), "mpi");
    thread.detach();
  }

  void serve() {
    int looks = 0;
    auto since = Clock::now();
    while (true) {
      const bool moved = run_jobs(looks, since) | test_calls();
      ++looks;
      if (moved) looks = 0, since = Clock::now();
    }
  }

  // Runs what was added. Before, it waits a while, the longer the less has happened:
  // nothing wakes this thread when another rank has sent something.
  bool run_jobs(int looks, Clock::time_point since) {
    std::unique_lock lock(mutex_);
    const auto called = [this] { return !jobs_.empty(); };
    const auto idle = Clock::now() - since;
    if (calls_.empty() && idle > kYield) {
      called_.wait(lock, called);
    } else if (idle > kYield) {
      const auto nap = std::min(microseconds(50) * (1 << std::min(looks / 64, 4)), kNap);
      called_.wait_for(lock, nap, called);
    } else if (looks > kSpins && !called()) {
      lock.unlock();
      sched_yield();
      lock.lock();
    }
    auto jobs = std::exchange(jobs_, {});
    lock.unlock();
    for (const auto& job : jobs) job();
    return !jobs.empty();
  }

  bool test_calls() {
    bool moved = false;
    for (auto call = calls_.begin(); call != calls_.end();) {
      moved |= (*call)->test();
      call = (*call)->done() ? calls_.erase(call) : std::next(call);
    }
    return moved;
  }

  static constexpr int kSpins = 100; // looks
  static constexpr microseconds kYield{500}, kNap{1000};

  std::mutex mutex_;
  std::condition_variable called_;
  std::deque<std::function<void()>> jobs_;
  std::list<std::shared_ptr<Call>> calls_; // of the thread alone
};

} // namespace mpi_collectives
