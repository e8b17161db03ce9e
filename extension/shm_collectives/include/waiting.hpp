#pragma once

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdint>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace shm_collectives {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;

// So much later than now, and at most what the clock can count.
inline Clock::time_point in(auto time) {
  return Clock::now() + std::min<decltype(time)>(time, std::chrono::hours(24 * 36500));
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
    if (sleepers_.load() > 0) {
      rings_.fetch_add(1);
      syscall(SYS_futex, &rings_, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
    }
  }

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
      // Returns at once if the bell has rung since it was read.
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

// The next step of a waiting thread. It spins as long as the answer of a running rank
// takes, then lets other threads run, then goes to sleep.
class Patience {
 public:
  // [patience]
  // Spinning helps only if all ranks can run at the same time.
  Patience(bool spin, microseconds yield_for)
      : spins_(spin ? 100 : 0), yield_for_(yield_for) {}

  // Spins or yields once; false if it is time to sleep.
  bool pause() {
    if (pauses_++ < spins_) {
      relax();
      return true;
    }
    const auto now = Clock::now();
    if (pauses_ == spins_ + 1) yielding_since_ = now;
    if (now - yielding_since_ >= yield_for_) return false;
    sched_yield();
    return true;
  }
  // [/patience]

  // Something has happened, so that more may follow soon.
  void renew() { pauses_ = 0; }

 private:
  static void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("isb");
#endif
  }

  int spins_;
  microseconds yield_for_;
  int pauses_ = 0;
  Clock::time_point yielding_since_;
};

struct WaitingPolicy {
  bool spin; // or yield from the beginning
  microseconds yield_for; // and then sleep

  WaitingPolicy at_most(microseconds time) const {
    return {spin, std::min(yield_for, time)};
  }
};

// An open file, closed with its last owner.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  int number() const { return number_; }

 private:
  int number_;
};

// Another process, as a descriptor (pidfd), which does not confuse it with a
// later process of the same id. Groups with the same ranks share it.
class Process {
 public:
  static std::shared_ptr<const Process> find(pid_t id) {
    static std::mutex mutex;
    static auto& known = *new std::map<pid_t, std::weak_ptr<const Process>>();
    const std::lock_guard lock(mutex);
    auto process = known[id].lock();
    if (!process || process->ended()) {
      known[id] = process = std::make_shared<Process>(id);
    }
    return process;
  }

  explicit Process(pid_t id)
      : id_(id),
        file_(static_cast<int>(syscall(SYS_pidfd_open, id, 0))),
        ended_(file_.number() < 0 && errno == ESRCH) {}

  pid_t id() const { return id_; }

  bool ended() const {
    pollfd entry{file_.number(), POLLIN, 0};
    return ended_ || (entry.fd >= 0 ? ::poll(&entry, 1, 0) == 1 : is_gone());
  }

 private:
  // Without a pidfd, because of an old kernel, a filter or too many open files: a
  // later process of the same id counts as this one.
  bool is_gone() const {
    std::string line; // "<id> (<name>) <state> ..."
    std::getline(std::ifstream("/proc/" + std::to_string(id_) + "/stat"), line);
    const bool zombie = line.find(") Z ", line.rfind(')')) != std::string::npos;
    return zombie || (kill(id_, 0) != 0 && errno == ESRCH);
  }

  pid_t id_;
  Descriptor file_;
  bool ended_;
};

// Whether this process is a fork of the one that called this with the value
// that `fork_count` had then.
inline uint64_t fork_count() {
  static std::atomic<uint64_t> count{0};
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { count.fetch_add(1); });
  (void)registered;
  return count.load();
}

// Once Python exits, it ends each other thread that asks for its lock, in the middle
// of C++, and that aborts the process. So these threads do not come back from a wait.
class PythonExit {
 public:
  static void begin() { thread_ = std::this_thread::get_id(); }
  static bool begun() { return thread_.load() != std::thread::id(); }

  static void keep_other_threads() {
    while (begun() && thread_.load() != std::this_thread::get_id()) ::pause();
  }

 private:
  static inline std::atomic<std::thread::id> thread_{}; // the one that ends Python
};

} // namespace shm_collectives
