#pragma once

#include "process.hpp"
#include "progress.hpp"
#include "threads.hpp"

namespace frame {

// after the last moments, until a thread is left alone
constexpr milliseconds kLateThread{500};
// About what it costs to hand an operation to a thread; more bytes take longer.
constexpr microseconds kBrief{40};
constexpr uint64_t kFewBytes = 64 << 10;

// What a group calls: it begins operations, waits for them, and ends them. A thread of
// the program that waits drives the operations itself, if no call of the transport can
// block. While none waits, and for a transport that can block, the driver does, a thread
// of the engine. A second thread calls back. Each thread that waits enforces the
// deadline, because the one that drives may hang in the transport. See Progress.
//
// A small call that comes while nothing else runs may end before any of this begins: see
// at_once().
//
// The threads own the engine. One that is stuck in the transport, or in a callback,
// keeps everything alive that it may still use, also after the end of the group.
class Engine : public std::enable_shared_from_this<Engine> {
 public:
  using Callback = Callers::Callback;

  // A call that at_once() has begun and not ended: submit() or run() goes on with it,
  // and no thread calls the transport before. If neither does, because the caller
  // throws first, the group fails: others may have the data of this rank.
  class Begun {
   public:
    Begun() : engine_(nullptr) {}
    Begun(Begun&&) = default;
    ~Begun() {
      if (turn_) engine_->give_up(std::move(turn_));
    }
    explicit operator bool() const { return static_cast<bool>(turn_); }

   private:
    friend class Engine;
    Engine* engine_;
    Turn turn_;
  };

  explicit Engine(std::unique_ptr<Transport> transport)
      : progress_(std::move(transport)) {}

  // Throws if it cannot start the threads. The other ranks have begun, so this one tells
  // them itself: the driver is the last thread, and not there yet.
  void start() {
    try {
      add_thread("callbacks", [](Engine& self) {
        calls_back_ = true;
        self.progress_.call_back();
      });
      add_thread("driver", [](Engine& self) { self.progress_.drive_for_others(); });
    } catch (const std::system_error& error) {
      const auto reason = who() + " " + shortage_of_threads(error);
      quietly([&] { progress_.transport().announce(reason); });
      close(reason);
      C10_THROW_ERROR(DistStoreError,
          "Backend " + names().backend + ": " + who() + " cannot join group \"" +
              names().group + "\": " + reason);
    }
  }

  const Names& names() const { return progress_.names(); }
  uint64_t sequence() const { return progress_.collectives(); }
  void check_process() const {
    TORCH_CHECK_WITH(DistBackendError, !in_fork(), "Backend ", names().backend,
        ": group \"", names().group,
        "\" belongs to the process that created it, not to a fork of it; call "
        "init_process_group in the new process");
  }

  // Tries to run a call on this thread alone: without the mutex, an allocation or a
  // coroutine. If it returns false, it may have begun: submit() or run() it with
  // `begun`.
  bool at_once(Arguments& arguments, Begun& begun) {
    check_process();
    begun.engine_ = this;
    const bool ended = progress_.at_once(arguments, begun.turn_);
    if (ended) arguments.finish(); // may throw, which concerns this rank alone
    PythonExit::keep_other_threads();
    return ended;
  }

  // Begins an operation.
  void submit(const PendingPtr& pending, Begun begun = {}) {
    check_process();
    PythonExit::keep_other_threads();
    progress_.add(pending, begun.turn_);
  }

  // For an operation that others are to drive: waits for its end where that comes
  // sooner than the driver could wake.
  void wait_briefly(const PendingPtr& pending) {
    if (progress_.can_block()) return;
    const Note& note = pending->note();
    const bool brief = note.bytes <= kFewBytes;
    // Two ranks that send to each other both receive only after this.
    const auto time = note.kind == Kind::send ? kBrief / 2 : kBrief;
    const auto limit = Clock::now() + (brief ? time : microseconds(0));
    // Another thread that drives, and rests, may not have begun it.
    if (!wait([&] { return pending->ended(); }, limit)) progress_.wake();
  }

  // Runs an operation to its end.
  void run(const PendingPtr& pending, Begun begun = {}) {
    submit(pending, std::move(begun));
    wait([&] { return pending->ended(); }, kNever);
  }

  // Returns whether done(), as soon as it is, or at the limit: see Progress.
  template <class Done>
  bool wait(const Done& done, Clock::time_point limit) {
    check_process();
    const WithoutGil without_gil; // the driver may need the GIL to let go of a tensor
    const bool in_time = progress_.wait(done, limit);
    PythonExit::keep_other_threads();
    return in_time;
  }

  // Calls back when the operation has ended: on the thread for that; in a callback, on
  // the thread that ends it, because PyTorch's PowerSGD hook waits there for another
  // future, which its own thread cannot complete. A callback must not wait for other
  // callbacks: neither gloo nor NCCL promises that. Where it waits for a future that
  // this thread is to complete later, it hangs: no timeout ends PyTorch's
  // Future.wait().
  void when_ended(const PendingPtr& pending, Callback callback) {
    if (pending->ended()) return call_here(callback);
    add_callback(*pending, calls_back_ ? pending->soon : pending->later, callback);
  }
  // Calls back before any thread learns that the operation has ended: a profiler may
  // stop as soon as it has. The callback must be short.
  void before_end(const PendingPtr& pending, Callback callback) {
    add_callback(*pending, pending->before_end, callback);
  }
  static bool calls_back() { return calls_back_; }

  // Waits for what other ranks need of this one.
  void drain() {
    if (in_fork()) return; // the operations belong to the parent
    const WithoutGil without_gil;
    progress_.drain();
    PythonExit::keep_other_threads();
  }

  // Ends all operations, and the threads.
  void close(const std::string& reason) {
    stop(reason);
    join();
  }

  // Ends all operations, and takes no more. Returns before the threads have ended.
  void stop(const std::string& reason) {
    if (!in_fork()) progress_.stop(reason);
  }

  // Waits for the threads. One that does not end in time, or that calls this, goes on
  // alone.
  void join() {
    if (!in_fork()) threads_.join(progress_.goodbye() + kLateThread);
  }

  // Ends all operations, on all ranks.
  void abort() {
    const WithoutGil without_gil; // callbacks may need it before the threads end
    if (!in_fork()) progress_.fail(who() + " has aborted the group");
    close("its group was aborted");
  }

 private:
  std::string who() const { return names().who(progress_.rank()); }
  bool in_fork() const { return forks_ != fork_count(); } // which has no threads

  void add_thread(const std::string& job, void (*serve)(Engine&)) {
    threads_.add(names().backend + "_" + job,
        [self = shared_from_this(), serve] { serve(*self); });
  }

  void add_callback(Pending& pending, Callers::Callbacks& list, Callback& callback) {
    check_process();
    if (!progress_.add_callback(pending, list, callback)) call_here(callback);
  }

  void call_here(const Callback& callback) {
    callback();
    // A thread may wait for a future that it has completed; in a fork, none does.
    if (!in_fork()) progress_.tell_all();
  }

  void give_up(Turn turn) {
    turn = Turn();
    quietly([this] {
      progress_.fail(who() +
          " cannot go on with a call that it has begun; the error of that call says "
          "why");
    });
  }

  static inline thread_local bool calls_back_ = false;

  const uint64_t forks_ = fork_count();
  Threads threads_;
  Progress progress_;
};

} // namespace frame
