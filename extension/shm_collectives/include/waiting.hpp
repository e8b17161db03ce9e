#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>

#include <sys/types.h>
#include <unistd.h>

namespace shm_collectives {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;

// [bell]
// Where the threads of one rank sleep until something happens. It is in shared
// memory, so that every rank can ring it.
//
// Memory order: one side posts (writes a counter) and then looks for sleepers;
// the other side announces its sleep and then looks at the counter. At least
// one of the two must see the other. Only sequentially consistent accesses
// promise that, so the counters and these fields use nothing weaker.
class Bell {
 public:
  // Call this after writing what the sleepers wait for.
  void ring();

  // Announces a sleep for as long as it exists. Look once more between creating
  // it and calling wait_for(): what came in between makes wait_for() return.
  class Sleep {
   public:
    explicit Sleep(Bell& bell);
    ~Sleep();
    void wait_for(microseconds time);

   private:
    Bell& bell_;
    uint32_t rings_;
  };

 private:
  std::atomic<uint32_t> rings_;
  std::atomic<uint32_t> sleepers_;
};
// [/bell]

// [patience]
// What a waiting thread does next. It spins as long as the answer of a running
// rank takes, then lets other threads run, then goes to sleep.
class Patience {
 public:
  // Spinning helps only if all ranks can run at the same time.
  Patience(bool spin, microseconds yield_for);
  // Spins or yields once; false if it is time to sleep.
  bool pause();
  // Something has happened, so that more may follow soon.
  void renew() { pauses_ = 0; }

 private:
  int spins_;
  microseconds yield_for_;
  int pauses_ = 0;
  Clock::time_point yielding_since_;
};
// [/patience]

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

// [process]
// Another process, as a descriptor (pidfd), which does not confuse it with a
// later process of the same id. Groups with the same ranks share it.
class Process {
 public:
  static std::shared_ptr<const Process> find(pid_t id);
  explicit Process(pid_t id);
  bool ended() const;

 private:
  Descriptor file_;
  bool ended_;
};
// [/process]

// Whether this process is a fork of the one that called this with the value
// that `fork_count` had then.
uint64_t fork_count();

} // namespace shm_collectives
