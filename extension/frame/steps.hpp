#pragma once

#include <coroutine>
#include <exception>
#include <utility>
#include <vector>

namespace frame {

class Nested;

// What a step waits for. A transport derives its own kinds from this, and writes
// `co_await` before them. It lives as long as the coroutine is suspended.
class Awaited {
 public:
  // Whether the steps can go on. Asks, and never waits; may throw.
  virtual bool ready() = 0;
  // The ranks that it waits for, so that errors name them; empty: any rank.
  virtual std::vector<int> missing() const { return {}; }
  // Whether ready(), although false, found that something got on.
  virtual bool moved() const { return false; }

  bool await_ready() { return ready(); }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> handle) {
    handle.promise().awaited = this;
  }
  void await_resume() const {}

 protected:
  ~Awaited() = default;
};

// An operation as the steps it takes: a coroutine that suspends itself where it needs
// another rank. The engine advances it, on whichever thread drives.
class Steps {
 public:
  struct promise_type {
    Awaited* awaited = nullptr;
    std::exception_ptr error;

    Steps get_return_object() { return Steps(Handle::from_promise(*this)); }
    std::suspend_always initial_suspend() { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { error = std::current_exception(); }
  };
  using Handle = std::coroutine_handle<promise_type>;

  // Nothing is left to do: for a transport that has done all without a coroutine.
  Steps() = default;
  Steps(Steps&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  Steps& operator=(Steps&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Steps() {
    if (handle_) handle_.destroy();
  }

  bool done() const { return !handle_ || handle_.done(); }

  // Goes on as far as the other ranks allow; false if nothing got on. Throws what the
  // steps throw.
  bool advance() {
    bool moved = false;
    while (!done()) {
      auto& promise = handle_.promise();
      if (promise.awaited != nullptr && !promise.awaited->ready()) {
        return moved || promise.awaited->moved();
      }
      promise.awaited = nullptr;
      handle_.resume();
      if (promise.error) std::rethrow_exception(promise.error);
      moved = true;
    }
    return moved;
  }

  std::vector<int> missing() const {
    const bool waits = !done() && handle_.promise().awaited != nullptr;
    return waits ? handle_.promise().awaited->missing() : std::vector<int>();
  }

  // Steps can wait for the end of other steps: `co_await exchange(...)`.
  Nested operator co_await() &&;

 private:
  explicit Steps(Handle handle) : handle_(handle) {}
  Handle handle_;
};

class Nested final : public Awaited {
 public:
  explicit Nested(Steps steps) : steps_(std::move(steps)) {}
  bool ready() override {
    moved_ = steps_.advance();
    return steps_.done();
  }
  std::vector<int> missing() const override { return steps_.missing(); }
  bool moved() const override { return moved_; }

 private:
  Steps steps_;
  bool moved_ = false;
};

inline Nested Steps::operator co_await() && { return Nested(std::move(*this)); }

} // namespace frame
