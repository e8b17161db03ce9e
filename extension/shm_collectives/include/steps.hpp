#pragma once

#include <atomic>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <utility>

namespace shm_collectives {

struct Until;

// An operation as the steps it takes: a coroutine that suspends itself where it
// needs another rank. The same code therefore serves a caller that waits for
// the result, one that does not, and the thread that finishes what was begun.
class Steps {
 public:
  struct promise_type;
  using Handle = std::coroutine_handle<promise_type>;

  Steps(Steps&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  ~Steps() {
    if (handle_) handle_.destroy();
  }

  // Goes on as far as the other ranks allow; false if that was nowhere. Throws
  // what the steps throw.
  bool advance();
  bool done() const { return handle_.done(); }
  // The condition of the next step.
  const Until& until() const;

 private:
  explicit Steps(Handle handle) : handle_(handle) {}
  Handle handle_;
};

// Waits until the counters of some ranks have reached a value. `co_await` does
// not suspend if they have. An Until owns nothing, so that a copy in the promise
// is as good as the temporary in the expression.
struct Until {
  const std::atomic<uint64_t>* counter = nullptr; // of the first rank
  uint64_t value = 0;
  int rank = 0; // the first rank; negative: any sender
  int ranks = 0; // the number of ranks
  size_t stride = 0; // bytes from one rank's counter to the next

  // [reached]
  bool reached_by(int index) const {
    const auto* first = reinterpret_cast<const char*>(counter);
    const auto* mine = first + static_cast<size_t>(index) * stride;
    // Pairs with the post: what was written before it can be read after this.
    return reinterpret_cast<const std::atomic<uint64_t>*>(mine)->load() >= value;
  }
  // [/reached]
  bool reached() const {
    for (int index = 0; index < ranks; ++index) {
      if (!reached_by(index)) return false;
    }
    return true;
  }

  // [await]
  bool await_ready() const { return reached(); }
  void await_suspend(Steps::Handle handle) const;
  void await_resume() const {}
  // [/await]
};

struct Steps::promise_type {
  Until until;
  std::exception_ptr error;

  Steps get_return_object() { return Steps(Handle::from_promise(*this)); }
  std::suspend_always initial_suspend() { return {}; }
  std::suspend_always final_suspend() noexcept { return {}; }
  void return_void() {}
  void unhandled_exception() { error = std::current_exception(); }
};

// [resume]
inline void Until::await_suspend(Steps::Handle handle) const {
  handle.promise().until = *this;
}

inline bool Steps::advance() {
  bool moved = false;
  while (!handle_.done() && until().reached()) {
    handle_.resume();
    moved = true;
  }
  if (handle_.done() && handle_.promise().error) {
    std::rethrow_exception(handle_.promise().error);
  }
  return moved;
}

// [/resume]
inline const Until& Steps::until() const { return handle_.promise().until; }

} // namespace shm_collectives
