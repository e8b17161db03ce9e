#pragma once

#include <deque>
#include <list>

#include <c10/util/Exception.h>
#include <c10/util/thread_name.h>

#include "pending.hpp"
#include "process.hpp"

namespace frame {

constexpr milliseconds kCheckEvery{50}; // the state of the other ranks
constexpr milliseconds kLastMoments{2000}; // for sends, goodbyes and threads, at the end

// Runs the operations of one rank of a group, by one rule:
//
//   A thread that waits drives, if the transport's steps cannot block; the driver's
//   thread drives everything else; the caller's thread calls back, in order of ends.
//
// To drive is to call the transport, which only one thread does at a time. Collectives
// run one after another. If steps can block, a third thread, which never calls the
// transport, ends the operations of a driver that does not come back. An operation fails
// with its group: all others fail with the same reason, and so do later ones.
//
// The threads own the engine. One that is stuck in the transport, or in a callback, keeps
// everything alive that it may still use, also when the group has been destroyed.
class Engine : public std::enable_shared_from_this<Engine> {
 public:
  using Callback = Pending::Callback;

  explicit Engine(std::unique_ptr<Transport> transport)
      : names_(transport->names()), rank_(transport->rank()),
      can_block_(transport->can_block()), transport_(std::move(transport)) {}

  void start() {
    const std::lock_guard lock(mutex_);
    add_thread(&Engine::drive_as_thread, "driver");
    add_thread(&Engine::call_back, "callbacks");
    if (can_block_) add_thread(&Engine::keep_deadlines, "deadlines");
  }

  const Names& names() const { return names_; }

  uint64_t sequence() const {
    const std::lock_guard lock(mutex_);
    return sequence_;
  }

  std::vector<int> missing(const Pending& pending) const {
    const std::lock_guard lock(mutex_);
    return pending.missing;
  }

  void check_process() const {
    TORCH_CHECK_WITH(DistBackendError, forks_ == fork_count(), "Backend ",
        names_.backend, ": group \"", names_.group, "\" belongs to the process that "
        "created it, not to a fork of it; call init_process_group in the new process");
  }

  // Begins an operation. Follow it with a wait(), or call it with `async`.
  void submit(const PendingPtr& pending, bool async) {
    check_process();
    PythonExit::keep_other_threads();
    Lock lock(mutex_);
    Note& note = pending->arguments->note;
    TORCH_CHECK_WITH(DistBackendError, !closed_, "Backend ", names_.backend,
        " cannot run ", describe(note), ": ", *closed_);
    if (!is_message(note.kind)) note.sequence = ++sequence_;
    if (failure_) return pending->end(error_of(*pending, *failure_));
    unfinished_.push_back(pending);
    submitted_.push_back(pending);
    if (async || can_block_) wake_driver();
    if (can_block_ && driving_) watch_.notify_one();
  }

  // Returns whether `done()`, as soon as it is, or at the limit. The mutex is held while
  // it is asked.
  template <class Done>
  bool wait(const Done& done, Clock::time_point limit) {
    check_process();
    Lock lock(mutex_);
    ++waiting_;
    if (driving_) transport_->wake(); // the driver lets this thread drive
    while (!done() && Clock::now() < limit) {
      if (can_block_ || driving_) {
        changed_.wait_until(lock, bounded(limit));
      } else {
        drive(lock, done, limit);
      }
    }
    --waiting_;
    const bool in_time = done();
    if (!can_block_ && has_work()) wake_driver();
    lock.unlock();
    PythonExit::keep_other_threads();
    return in_time;
  }

  // Calls `callback` when the operation has ended, behind the callbacks of those that
  // have ended before. A callback of the program may ask for another future and wait for
  // it, as PyTorch's PowerSGD and quantization hooks do: the driver completes that.
  void when_ended(const PendingPtr& pending, Callback callback) {
    if (forks_ != fork_count() && pending->ended()) return callback();
    check_process();
    Lock lock(mutex_);
    const bool inside = calls_back_;
    if (!pending->ended()) {
      auto& list = inside ? pending->at_end : pending->callbacks;
      return list.push_back(std::move(callback));
    }
    if (!inside && (calling_ || !calls_.empty())) {
      return calls_.push_back(std::move(callback));
    }
    lock.unlock();
    callback();
  }

  // Calls a short function on the thread that ends the operation, or now.
  void at_end(const PendingPtr& pending, Callback callback) {
    Lock lock(mutex_);
    if (!pending->ended()) return pending->at_end.push_back(std::move(callback));
    lock.unlock();
    callback();
  }

  // Whether this thread is in a callback. It must not wait for other callbacks.
  static bool calls_back() { return calls_back_; }

  // Waits for what other ranks need of this one: all collectives, which have deadlines,
  // and sends for as long as anything gets on. Perhaps nobody receives the others.
  void drain() {
    if (forks_ != fork_count()) return; // the operations belong to the parent
    const auto none_of = [this](bool messages) {
      return std::ranges::none_of(unfinished_, [=](const auto& one) {
        const Kind kind = one->note().kind;
        return messages ? kind == Kind::send : !is_message(kind);
      });
    };
    wait([&] { return none_of(false); }, kNever);
    for (uint64_t before = ~uint64_t{0}; before != moves_;) {
      before = moves_;
      if (wait([&] { return none_of(true); }, in(kLastMoments))) return;
    }
  }

  // Ends all operations, and the threads. A thread that does not end in time, or that
  // calls this, goes on alone.
  void close(const std::string& reason) {
    end_operations(reason);
    end_threads();
  }

  void end_operations(const std::string& reason) {
    if (forks_ != fork_count()) return;
    Lock lock(mutex_);
    if (!closed_) closed_ = reason;
    end_all(*closed_, lock);
    lock.lock();
    goodbye_ = in(kLastMoments);
    for (auto* each : {&changed_, &driver_, &caller_, &watch_}) each->notify_all();
    transport_->wake();
  }

  void end_threads() {
    if (forks_ != fork_count()) return; // a fork has no thread that could be joined
    Lock lock(mutex_);
    const auto none = [this] { return running_ == 0; };
    const auto limit = goodbye_ + 10 * kCheckEvery;
    const bool join = !is_thread_ && changed_.wait_until(lock, limit, none);
    auto threads = std::exchange(threads_, {});
    lock.unlock();
    for (auto& thread : threads) join ? thread.join() : thread.detach();
  }

  // The same on all ranks.
  void abort() {
    if (forks_ == fork_count()) fail(names_.who(rank_) + " has aborted the group");
    close("its group was aborted");
  }

 private:
  using Lock = std::unique_lock<std::mutex>;

  // Condition variables may count in signed nanoseconds.
  static Clock::time_point bounded(Clock::time_point limit) {
    return std::min(limit, Clock::now() + std::chrono::hours(1));
  }

  void add_thread(void (Engine::*serve)(Lock&), const std::string& job) {
    threads_.emplace_back([self = shared_from_this(), serve, job] {
      c10::setThreadName((self->names_.backend + "_" + job).substr(0, 15));
      is_thread_ = true;
      Lock lock(self->mutex_);
      (self.get()->*serve)(lock);
      if (--self->running_ == 0) self->changed_.notify_all();
    });
    ++running_;
  }

  bool has_work() const { return !unfinished_.empty() || (failure_ && !told_); }

  void wake_driver() {
    driver_.notify_one();
    transport_->wake();
  }

  // [drive]
  // Makes all calls of the transport, until done() or the limit.
  template <class Done>
  void drive(Lock& lock, const Done& done, Clock::time_point limit) {
    driving_ = true;
    for (int idle = 0; !done() && Clock::now() < limit;) {
      for (const auto& each : std::exchange(submitted_, {})) {
        (is_message(each->note().kind) ? messages_ : collectives_).push_back(each);
      }
      came_back_ = Clock::now();
      const auto failure = failure_;
      lock.unlock();
      const bool moved = failure ? give_up(*failure) : advance_all();
      if (moved) {
        moves_.fetch_add(1);
        idle = 0;
      } else {
        transport_->rest(idle++);
      }
      lock.lock();
    }
    driving_ = false;
    changed_.notify_all(); // another thread may want to drive
  }

  void drive_as_thread(Lock& lock) {
    const auto for_others = [this] { return !can_block_ && waiting_ > 0; };
    while (!closed_) {
      if (driving_ || for_others() || !has_work()) {
        driver_.wait(lock);
      } else {
        drive(lock, [&] { return closed_ || for_others() || !has_work(); }, kNever);
      }
    }
    while (driving_) changed_.wait(lock);
    driving_ = true; // for ever
    const bool orderly = !failure_;
    lock.unlock();
    if (!orderly) give_up(*failure_);
    leave(orderly);
    lock.lock();
  }
  // [/drive]

  // Every pass advances all that can advance. Only now and then it looks for reasons why
  // others never will.
  bool advance_all() {
    const auto now = Clock::now();
    const bool check = now >= next_check_;
    std::optional<std::string> reason;
    try {
      if (check) reason = transport_->failure();
    } catch (const std::exception& error) {
      reason = text_of(error);
    }
    if (check) next_check_ = now + kCheckEvery;
    if (reason) {
      told_ = true; // another rank has announced it
      fail(*reason);
      return true;
    }
    bool moved = false;
    while (!collectives_.empty()) {
      moved |= advance(collectives_.front(), now, check);
      if (!collectives_.front()->ended()) break;
      collectives_.front()->steps = Steps();
      collectives_.pop_front();
    }
    messages_.remove_if([&](const auto& message) {
      moved |= advance(message, now, check);
      if (message->ended()) message->steps = Steps();
      return message->ended();
    });
    return moved;
  }

  // Returns whether the operation got on, or ended.
  bool advance(const PendingPtr& pending, Clock::time_point now, bool check) {
    if (pending->ended()) return true; // by another thread
    std::string reason;
    try {
      const bool first = !std::exchange(pending->begun, true);
      if (first) begin(*pending);
      const bool moved = pending->steps.advance();
      if (pending->steps.done()) {
        pending->arguments->finish();
        end(pending);
        return true;
      }
      const bool late = now >= pending->deadline;
      if (!first && !check && !late) return moved;
      const auto missing = note_missing(*pending);
      reason = transport_->lost(missing).value_or("");
      // A rank may show its last data and then leave: look for the data once more.
      if (!reason.empty() && pending->steps.advance()) return true;
      if (!reason.empty()) reason += " during " + describe(pending->note());
      if (reason.empty() && late) reason = timed_out(*pending, missing);
    } catch (const std::exception& error) {
      reason = text_of(error);
    }
    if (reason.empty()) return false;
    fail(reason);
    return true;
  }

  void begin(Pending& pending) {
    pending.operation = pending.arguments->operation(pending.arguments);
    if (!is_message(pending.note().kind)) {
      const std::lock_guard lock(mutex_);
      pending.deadline = in(pending.arguments->timeout);
      if (can_block_) watch_.notify_one();
    }
    pending.steps = frame::begin(*transport_, pending.operation);
  }

  static std::string text_of(const std::exception& error) {
    const auto* ours = dynamic_cast<const c10::Error*>(&error);
    return ours ? ours->what_without_backtrace() : error.what();
  }

  std::vector<int> note_missing(Pending& pending) {
    const auto missing = pending.steps.missing();
    const std::lock_guard lock(mutex_);
    return pending.missing = missing;
  }

  std::string timed_out(const Pending& pending, std::vector<int> missing) const {
    if (!pending.arguments->name_all && missing.size() > 1) missing.resize(1);
    const auto late = names_.who(missing);
    const auto time = std::to_string(pending.arguments->timeout.count()) + " ms";
    if (pending.note().kind == Kind::monitored_barrier) { // the words of gloo's
      return late + " failed to pass monitoredBarrier in " + time + "; Rank " +
          std::to_string(rank_) + " timed out in monitoredBarrier";
    }
    return "Timed out after " + time + ": " + names_.who(rank_) + " has waited in " +
        describe(pending.note()) + " for " + late;
  }

  // The driver's part of a failure: tells the others, and lets go of the operations.
  bool give_up(const std::string& reason) {
    if (!told_.exchange(true)) {
      try {
        transport_->announce(reason);
      } catch (const std::exception&) { // they find out at their deadlines
      }
    }
    for (auto* list : {&collectives_, &messages_}) {
      for (const auto& each : *list) each->steps = Steps();
      list->clear();
    }
    return true;
  }

  void leave(bool orderly) {
    try {
      collectives_.clear();
      messages_.clear();
      Steps steps = transport_->leave(orderly);
      for (int idle = 0; !steps.done() && Clock::now() < goodbye_;) {
        steps.advance() ? idle = 0 : (transport_->rest(idle), ++idle);
      }
    } catch (const std::exception&) { // the way to the others is lost
    }
  }

  // [deadlines]
  // Ends operations whose driver does not come back. It would have done so itself.
  void keep_deadlines(Lock& lock) {
    while (!closed_) {
      Clock::time_point next = kNever;
      PendingPtr late;
      for (const auto& each : unfinished_) {
        const auto at = latest_end(*each);
        if (at < next) std::tie(next, late) = std::tie(at, each);
      }
      if (Clock::now() < next) {
        watch_.wait_until(lock, bounded(next));
        continue;
      }
      const auto reason = timed_out(*late, late->missing) + "; the transport hangs";
      lock.unlock();
      fail(reason);
      lock.lock();
    }
  }

  Clock::time_point latest_end(const Pending& pending) const {
    if (pending.deadline != kNever) return pending.deadline + kCheckEvery;
    // Not begun: because it is behind others, or because the driver hangs.
    if (is_message(pending.note().kind) || !driving_) return kNever;
    return came_back_ + pending.arguments->timeout + kCheckEvery;
  }
  // [/deadlines]

  void fail(const std::string& reason) {
    Lock lock(mutex_);
    if (!failure_) failure_ = reason;
    end_all(*failure_, lock);
  }

  std::exception_ptr error_of(const Pending& pending, const std::string& reason) const {
    return std::make_exception_ptr(c10::DistBackendError(
        {__func__, __FILE__, __LINE__}, "Backend " + names_.backend + ": " +
        describe(pending.note()) + " of group \"" + names_.group + "\" failed on " +
        names_.who(rank_) + ": " + reason));
  }

  void end(const PendingPtr& pending) {
    std::vector<Callback> now;
    Lock lock(mutex_);
    end(pending, nullptr, now);
    lock.unlock();
    for (const auto& callback : now) callback();
  }

  // Unlocks.
  void end_all(const std::string& reason, Lock& lock) {
    std::vector<Callback> now;
    for (const auto& each : std::list(unfinished_)) end(each, error_of(*each, reason), now);
    wake_driver(); // which tells the others
    lock.unlock();
    for (const auto& callback : now) callback();
  }

  void end(const PendingPtr& pending, std::exception_ptr error, std::vector<Callback>& now) {
    if (pending->ended()) return; // by another thread
    pending->end(std::move(error));
    unfinished_.remove(pending);
    for (auto& each : std::exchange(pending->at_end, {})) now.push_back(std::move(each));
    for (auto& each : std::exchange(pending->callbacks, {})) {
      calls_.push_back(std::move(each));
    }
    if (!calls_.empty()) caller_.notify_one();
    changed_.notify_all();
  }

  // [callbacks]
  void call_back(Lock& lock) {
    calls_back_ = true;
    while (!closed_ || !calls_.empty()) {
      if (calls_.empty()) {
        caller_.wait(lock);
        continue;
      }
      auto callback = std::move(calls_.front());
      calls_.pop_front();
      calling_ = true;
      lock.unlock();
      callback(); // may take any time, and needs Python's lock
      callback = nullptr;
      lock.lock();
      calling_ = false;
      changed_.notify_all(); // a thread may wait for the future
      if (driving_ && waiting_ > 0) transport_->wake();
    }
  }
  // [/callbacks]

  static inline thread_local bool is_thread_ = false, calls_back_ = false;

  const Names names_;
  const int rank_;
  const bool can_block_;
  const uint64_t forks_ = fork_count();

  mutable std::mutex mutex_; // guards these; never held while anything is called
  std::condition_variable changed_, driver_, caller_, watch_;
  std::vector<std::thread> threads_;
  int running_ = 0; // threads
  int waiting_ = 0; // threads of the program in wait()
  uint64_t sequence_ = 0;
  std::list<PendingPtr> unfinished_; // everything that has not ended
  std::vector<PendingPtr> submitted_; // of these, those that no driver has seen
  std::deque<Callback> calls_;
  bool calling_ = false, driving_ = false;
  Clock::time_point came_back_; // the driver, from the transport
  Clock::time_point goodbye_; // the end of leaving
  std::optional<std::string> failure_, closed_;
  std::atomic<uint64_t> moves_{0};
  std::atomic<bool> told_{false}; // the others know of the failure

  // Only the thread that drives uses these.
  std::unique_ptr<Transport> transport_; // destroyed after the steps
  std::list<PendingPtr> collectives_, messages_;
  Clock::time_point next_check_;
};

} // namespace frame
