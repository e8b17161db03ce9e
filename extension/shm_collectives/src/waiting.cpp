#include "waiting.hpp"

#include <cerrno>
#include <climits>
#include <map>
#include <mutex>

#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace shm_collectives {

namespace {

constexpr int kSpins = 100;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

} // namespace

// [bell]
void Bell::ring() {
  if (sleepers_.load() > 0) {
    rings_.fetch_add(1);
    syscall(SYS_futex, &rings_, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }
}

Bell::Sleep::Sleep(Bell& bell) : bell_(bell) {
  bell_.sleepers_.fetch_add(1);
  rings_ = bell_.rings_.load();
}

Bell::Sleep::~Sleep() {
  bell_.sleepers_.fetch_sub(1);
}

void Bell::Sleep::wait_for(microseconds time) {
  timespec limit{time.count() / 1000000, time.count() % 1000000 * 1000};
  // Returns at once if the bell has rung since it was read.
  syscall(SYS_futex, &bell_.rings_, FUTEX_WAIT, rings_, &limit, nullptr, 0);
}
// [/bell]

// [patience]
Patience::Patience(bool spin, microseconds yield_for)
    : spins_(spin ? kSpins : 0), yield_for_(yield_for) {}

bool Patience::pause() {
  if (pauses_++ < spins_) {
    relax();
    return true;
  }
  const auto now = Clock::now();
  if (pauses_ == spins_ + 1) yielding_since_ = now;
  sched_yield();
  return now - yielding_since_ < yield_for_;
}
// [/patience]

// [process]
std::shared_ptr<const Process> Process::find(pid_t id) {
  static std::mutex mutex;
  static auto& known = *new std::map<pid_t, std::weak_ptr<const Process>>();
  const std::lock_guard lock(mutex);
  auto process = known[id].lock();
  if (!process || process->ended()) {
    process = std::make_shared<Process>(id);
    known[id] = process;
  }
  return process;
}

// An error other than "no such process" leaves the timeouts in charge.
Process::Process(pid_t id) : file_(static_cast<int>(syscall(SYS_pidfd_open, id, 0))),
    ended_(file_.number() < 0 && errno == ESRCH) {}

bool Process::ended() const {
  pollfd entry{file_.number(), POLLIN, 0};
  return ended_ || (entry.fd >= 0 && ::poll(&entry, 1, 0) == 1);
}
// [/process]

uint64_t fork_count() {
  static std::atomic<uint64_t> count{0};
  static const int registered = pthread_atfork(nullptr, nullptr, [] { count.fetch_add(1); });
  (void)registered;
  return count.load();
}

} // namespace shm_collectives
