#pragma once

#include <concepts>
#include <coroutine>
#include <exception>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace frame {

class Nested;

// A condition that steps wait for with `co_await`. It must live as long as the coroutine
// is suspended, so it has a name: a temporary does not compile there.
class Awaited {
 public:
  // Whether the steps can go on. Asks, and never waits; what it throws, `co_await` throws.
  virtual bool ready() = 0;
  // Whether the last ready() made progress, even if not to the end.
  virtual bool moved() const { return false; }
  // The ranks that it waits for, so that errors name them; empty: any rank.
  virtual std::vector<int> missing() const { return {}; }
  // What an error says behind their names, about why they are late.
  virtual std::string because() const { return ""; }

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
//
// Steps await a condition with a name, or other steps: `co_await exchange(...)`. GCC 11
// and 12 destroy some parts of an expression with `co_await` twice: the branches of `?:`,
// what a lambda has captured by value, and the members of `Type{...}`. This compiles, and
// may crash. So let its arguments be names, calls and numbers, and give the rest a name:
// `Steps next = few ? short_way() : long_way(); co_await std::move(next);`
class Steps {
 public:
  struct promise_type {
    Awaited* awaited = nullptr;
    std::exception_ptr error; // on its way into the coroutine, or out of it

    Steps get_return_object() { return Steps(Handle::from_promise(*this)); }
    std::suspend_always initial_suspend() { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { error = std::current_exception(); }

    bool is_ready() {
      try {
        return awaited == nullptr || awaited->ready();
      } catch (...) {
        error = std::current_exception();
        return true;
      }
    }

    // [await]
    template <class Condition> // Awaited&, or Nested
    struct Wait {
      Condition condition;
      promise_type& promise;

      bool await_ready() { return condition.ready(); }
      void await_suspend(std::coroutine_handle<>) { promise.awaited = &condition; }
      void await_resume() {
        if (promise.error)
          std::rethrow_exception(std::exchange(promise.error, nullptr));
      }
    };
    // [/await]
    // What an expression calls before these. GCC 12 copies what `co_await list[i]` awaits
    // if nothing is called.
    Wait<Awaited&> await_transform(Awaited& named) { return {named, *this}; }
    Wait<Nested> await_transform(Steps&& steps);
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
      if (!promise.is_ready()) return moved || promise.awaited->moved();
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
  std::string because() const {
    const bool waits = !done() && handle_.promise().awaited != nullptr;
    return waits ? handle_.promise().awaited->because() : "";
  }

 private:
  explicit Steps(Handle handle) : handle_(handle) {}
  Handle handle_;
};

// The end of other steps.
class Nested final : public Awaited {
 public:
  explicit Nested(Steps steps) : steps_(std::move(steps)) {}
  bool ready() override {
    moved_ = steps_.advance();
    return steps_.done();
  }
  bool moved() const override { return moved_; }
  std::vector<int> missing() const override { return steps_.missing(); }
  std::string because() const override { return steps_.because(); }

 private:
  Steps steps_;
  bool moved_ = false;
};

inline Steps::promise_type::Wait<Nested> Steps::promise_type::await_transform(
    Steps&& steps) {
  return {Nested(std::move(steps)), *this};
}

// The end of several steps, which go on side by side:
// `Together both(send(...), receive(...)); co_await both;`. The first exception counts at
// once: another one may wait for what the failed steps would have sent. The other steps
// end where they are when this is destroyed, as those of a failed group do.
class Together final : public Awaited {
 public:
  explicit Together(std::vector<Steps> all) : open_(std::move(all)) {}
  template <std::same_as<Steps>... Each>
  explicit Together(Each... each) {
    (open_.push_back(std::move(each)), ...);
  }

  bool ready() override {
    moved_ = false;
    for (Steps& steps : open_) moved_ |= steps.advance();
    std::erase_if(open_, [](const Steps& steps) { return steps.done(); });
    return open_.empty();
  }
  bool moved() const override { return moved_; }

  // Without those steps that wait for any rank, if others wait for certain ones.
  std::vector<int> missing() const override {
    std::set<int> ranks;
    for (const Steps& steps : open_) {
      for (const int rank : steps.missing()) ranks.insert(rank);
    }
    return {ranks.begin(), ranks.end()};
  }

 private:
  std::vector<Steps> open_;
  bool moved_ = false;
};

} // namespace frame
