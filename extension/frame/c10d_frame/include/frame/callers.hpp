#pragma once

#include <deque>
#include <functional>
#include <mutex>

#include "transport.hpp"

namespace frame {

// Who waits for an engine, who drives it, and what is to be called back. The mutex of
// Progress guards it; the methods that take its lock give it away while they wait or call.
class Callers {
 public:
  using Callback = std::function<void()>;
  using Callbacks = std::vector<Callback>;
  using Lock = std::unique_lock<std::mutex>;

  // A thread of the program that drives while it waits. While there is one, the driver,
  // a thread of the engine, sleeps.
  class Drives {
   public:
    explicit Drives(Callers& callers) : callers_(callers) { ++callers_.driving_; }
    ~Drives() { --callers_.driving_; }

   private:
    Callers& callers_;
  };
  bool none_drives() const { return driving_ == 0; }

  // Something has changed for which a thread may wait. The count tells a thread that
  // has looked before whether it may rest.
  void tell_all() {
    ++changes_;
    changed_.notify_all();
  }
  uint64_t changes() const { return changes_; }
  void wait(Lock& lock, Clock::time_point limit) { changed_.wait_until(lock, limit); }

  void wake_driver() { driver_.notify_one(); }
  template <class Wanted>
  void wait_as_driver(Lock& lock, const Wanted& wanted) {
    driver_.wait(lock, wanted);
  }

  // Calls what is in a list of an operation that is about to end, and what comes to it
  // meanwhile.
  void call_now(Lock& lock, Callbacks& list) {
    while (!list.empty()) call(lock, std::exchange(list, {}));
  }

  // For the thread that ends an operation, when it has given back the turn: a callback
  // may wait for another operation.
  void call_soon(Callbacks callbacks) {
    for (auto& each : callbacks) soon_.push_back(std::move(each));
  }
  void call_those(Lock& lock) {
    if (std::exchange(calls_those_, true)) return; // another thread goes on with these
    while (!soon_.empty()) {
      call(lock, std::exchange(soon_, {}));
      tell_all();
    }
    calls_those_ = false;
  }

  // For the thread that calls back.
  void call_later(Callbacks callbacks) {
    if (!callbacks.empty()) wake_caller();
    for (auto& each : callbacks) later_.push_back(std::move(each));
  }
  void wake_caller() { called_.notify_one(); }
  bool has_calls() const { return !later_.empty(); }
  void wait_for_calls(Lock& lock, Clock::time_point limit) {
    called_.wait_until(lock, limit);
  }
  void call_next(Lock& lock) {
    Callbacks next{std::move(later_.front())};
    later_.pop_front();
    call(lock, std::move(next)); // may take any time, and needs Python's lock
    tell_all(); // a thread may wait for the future
  }

 private:
  // An exception of a callback ends the process, as with gloo: the thread that ends an
  // operation has nobody to raise it to, and other callbacks would never be called.
  static void call(Lock& lock, Callbacks callbacks) {
    lock.unlock();
    try {
      for (const auto& each : callbacks) each();
    } catch (...) {
      std::terminate(); // which prints it
    }
    callbacks.clear();
    lock.lock();
  }

  Condition changed_, driver_, called_;
  int driving_ = 0;
  uint64_t changes_ = 0;
  std::deque<Callback> later_;
  Callbacks soon_;
  bool calls_those_ = false; // a thread, one after another, in their order
};

} // namespace frame
