#pragma once

#include <coroutine>
#include <exception>
#include <functional>
#include <utility>
#include <vector>

namespace frame {

class Nested;

// A condition that steps wait for with `co_await`. It must live as long as the coroutine
// is suspended, so name it: GCC 12 loses temporaries that are made in that expression.
class Awaited {
 public:
  // Whether the steps can go on. Asks, and never waits; may throw.
  virtual bool ready() = 0;
  // Whether the last ready() made progress, even if not to the end.
  virtual bool moved() const { return false; }
  // The ranks that it waits for, so that errors name them; empty: any rank.
  virtual std::vector<int> missing() const { return {}; }

  // [await]
  bool await_ready() { return ready(); }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> handle) {
    handle.promise().awaited = this;
  }
  void await_resume() const {}
  // [/await]

 protected:
  ~Awaited() = default;
};

// A condition made of functions, for transports to which an allocation costs nothing.
class Until final : public Awaited {
 public:
  using Ranks = std::function<std::vector<int>()>;

  explicit Until(
      std::function<bool()> ready, Ranks missing = [] { return std::vector<int>(); })
      : ready_(std::move(ready)), missing_(std::move(missing)) {}
  bool ready() override { return ready_(); }
  std::vector<int> missing() const override { return missing_(); }

 private:
  const std::function<bool()> ready_;
  const Ranks missing_;
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

  // [resume]
  // Goes on as far as the other ranks allow; returns whether that was any further.
  // Throws what the steps throw.
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
  // [/resume]

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
  bool moved() const override { return moved_; }
  std::vector<int> missing() const override { return steps_.missing(); }

 private:
  Steps steps_;
  bool moved_ = false;
};

inline Nested Steps::operator co_await() && { return Nested(std::move(*this)); }

} // namespace frame
