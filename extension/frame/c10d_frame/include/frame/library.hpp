#pragma once

#include <deque>
#include <future>
#include <list>

#include <pthread.h>
#include <unistd.h>

#include "file_bell.hpp"

namespace frame {

// [call]
// Something that a library has been asked to do. The library may use its memory until it
// is done, also if the operation fails before, so the call owns that memory, and itself.
class Call {
 public:
  explicit Call(std::shared_ptr<Bell> bell) : bell_(std::move(bell)) {}
  virtual ~Call() = default;

  // Whether it is done. The operation asks, and owns it alone from then on: to let go of a
  // tensor may take Python, for which the thread of the library must not wait.
  bool done() {
    if (!done_) return false;
    if (error_.empty()) self_.reset(); // else the library may still use the memory
    return true;
  }
  // What went wrong, once it is done.
  const std::string& error() const { return error_; }

 protected:
  // The thread of the library alone calls these. They never wait for another rank.
  virtual void begin() = 0;
  virtual bool has_ended() = 0;
  // Called if the operation has ended before, as when its group fails or is left. Returns
  // whether the library will let go of the memory: then has_ended() is asked until it has.
  // Must not throw. A library that has to be closed is closed after that.
  virtual bool cancel() { return false; }

 private:
  friend class Library;

  // Both return whether this need not be looked at any more. The operation may have
  // destroyed it then.
  template <class Step>
  bool advance(const Step& step) {
    try {
      if (!step()) return false;
    } catch (const std::exception& error) {
      error_ = error.what();
    }
    const auto bell = bell_;
    done_ = true;
    bell->ring();
    return true;
  }
  bool look() {
    // Once it owns itself alone, nobody else can get hold of it. It stays for ever.
    const bool left_behind = self_.use_count() == 1;
    if (left_behind && !cancelled_) {
      if (!cancel()) return true;
      cancelled_ = true;
    }
    return advance([this] { return has_ended(); });
  }

  const std::shared_ptr<Bell> bell_;
  std::atomic<bool> done_{false};
  std::string error_;
  std::shared_ptr<Call> self_; // until the operation knows that it is done
  bool cancelled_ = false; // of the thread of the library
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
  explicit Library(std::string name) : name_(std::move(name)) {}

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
    const auto done = std::make_shared<Bell>();
    add([task, done] {
      (*task)();
      done->ring();
    });
    const auto soon = [&] { return std::min(limit, Clock::now() + kEvery); };
    while (done->wait(0, soon()) == 0) {
      look();
      if (Clock::now() < limit) continue;
      throw std::runtime_error(name_ + " could not " + what + " in time");
    }
    result.get();
  }

  void begin(const CallPtr& call) {
    call->self_ = call;
    add([this, call = call.get()] {
      const auto begin = [call] {
        call->begin();
        return false;
      };
      if (!call->advance(begin)) calls_.push_back(call);
    });
  }

  // The first job starts the thread.
  void add(std::function<void()> job) {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(started_, true)) start();
    jobs_.push_back(std::move(job));
    added_.ring();
  }
  // [/library]

 protected:
  ~Library() = default;

  // [hooks]
  // For a library that makes progress as a whole. The thread alone calls these, and none
  // throws. The first is called at each look, and returns whether anything moved.
  virtual bool progress() { return false; }
  // A descriptor that can be read when there is something to do. The thread sleeps on it,
  // also while no call is open; without one it naps, and only while a call is open.
  virtual int file() { return -1; }
  // Whether the thread may sleep, as ucp_worker_arm and fi_trywait say.
  virtual bool arm() { return true; }
  // [/hooks]

 private:
  // The mutex is held.
  void start() {
    try {
      Thread thread([this] { serve(); });
      pthread_setname_np(thread.native_handle(), name_.c_str());
      thread.detach();
    } catch (const std::system_error&) {
      started_ = false;
      throw;
    }
  }

  // [serve]
  void serve() {
    for (Idle idle{0, Clock::now()};; ++idle.looks) {
      bool moved = run_jobs();
      const auto before = Clock::now();
      moved |= progress();
      moved |= std::erase_if(calls_, [](Call* call) { return call->look(); }) > 0;
      const auto now = Clock::now();
      // A look that takes so long has copied data.
      if (moved || now - before > kShortLook) {
        idle = {0, now};
      } else {
        rest(idle);
      }
    }
  }

  bool run_jobs() {
    std::unique_lock lock(mutex_);
    const auto jobs = std::exchange(jobs_, {});
    lock.unlock();
    for (const auto& job : jobs) job();
    return !jobs.empty();
  }

  // Nothing wakes this thread when another rank has sent something, unless the library has
  // a file for that. So it looks again at once, then lets others run between its looks,
  // and at last naps, but only for so long that a rank of a busy machine is not held up.
  void rest(const Idle& idle) {
    if (!calls_.empty() && idle.looks <= kSpins) return;
    const auto has_jobs = [this] {
      const std::lock_guard lock(mutex_);
      return !jobs_.empty();
    };
    if (file() >= 0) {
      added_.rest(file(), kNever, has_jobs, [this] { return arm(); });
      return;
    }
    const auto heard = added_.rings();
    const auto waited = Clock::now() - idle.since;
    if (has_jobs()) return;
    if (calls_.empty()) {
      added_.wait(heard, kNever);
    } else if (waited > kYieldFor) {
      const auto nap = std::min<Clock::duration>(waited / 8, kLongestNap);
      added_.wait(heard, Clock::now() + nap);
    } else {
      yield();
    }
  }
  // [/serve]

  static constexpr milliseconds kEvery{50}; // looks of the caller of run()
  static constexpr int kSpins = 100; // looks
  static constexpr microseconds kShortLook{20};
  static constexpr microseconds kYieldFor{500}, kLongestNap{1000};

  const std::string name_;
  const pid_t process_ = getpid(); // which has the thread
  std::mutex mutex_;
  FileBell added_;
  bool started_ = false;
  std::deque<std::function<void()>> jobs_;
  std::list<Call*> calls_; // of the thread alone
};

} // namespace frame
