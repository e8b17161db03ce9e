#pragma once

#include <deque>
#include <list>

#include "pending.hpp"
#include "process.hpp"
#include "threads.hpp"

namespace frame {

constexpr milliseconds kCheckEvery{50}; // the state of the other ranks
constexpr milliseconds kLastMoments{2000}; // for sends and goodbyes, at the end
constexpr milliseconds kLateThread{500}; // from then on, until a thread is left alone

// Runs the operations of one rank of a group, by one rule:
//
//   A synchronous call drives, if the transport cannot block. One thread drives
//   everything else. One thread calls back, in the order in which operations end.
//
// To drive is to call the transport, which one thread does at a time. Collectives run
// one after another, messages side by side. All fail together: the first failure ends
// the group. Each thread that waits keeps the deadline, because the driver may hang.
//
// The threads own the engine. One that is stuck in the transport, or in a callback,
// keeps everything alive that it may still use, also after the end of the group.
class Engine : public std::enable_shared_from_this<Engine> {
 public:
  using Callback = Pending::Callback;

  explicit Engine(std::unique_ptr<Transport> transport)
      : names_(transport->names()),
        rank_(transport->rank()),
        can_block_(transport->can_block()),
        transport_(std::move(transport)) {}

  void start() {
    const std::lock_guard lock(mutex_);
    add_thread(&Engine::drive_for_others, "driver");
    add_thread(&Engine::call_back, "callbacks");
  }

  const Names& names() const { return names_; }
  uint64_t sequence() const { return sequence_; }
  std::vector<int> missing(const Pending& pending) const {
    const std::lock_guard lock(mutex_);
    return pending.missing;
  }
  void check_process() const {
    TORCH_CHECK_WITH(DistBackendError, forks_ == fork_count(), "Backend ",
        names_.backend, ": group \"", names_.group,
        "\" belongs to the process that "
        "created it, not to a fork of it; call init_process_group in the new process");
  }

  // Begins an operation.
  void submit(const PendingPtr& pending) {
    add(pending);
    wake_driver();
  }

  // Runs an operation to its end.
  void run(const PendingPtr& pending) {
    add(pending);
    if (can_block_) wake_driver();
    wait([&] { return pending->ended(); }, kNever, /*drives=*/!can_block_);
  }

  // Returns whether `done()`, as soon as it is, or at the limit. The mutex is held while
  // it is asked.
  template <class Done>
  bool wait(const Done& done, Clock::time_point limit, bool drives = false) {
    check_process();
    Lock lock(mutex_);
    callers_ += drives;
    if (drives && driving_) transport_->wake(); // the thread lets this one drive
    while (!done() && Clock::now() < limit) {
      drives && !driving_ ? drive(lock, done) : sleep(lock, limit);
    }
    callers_ -= drives;
    if (drives && has_work()) driver_.notify_one();
    const bool in_time = done();
    lock.unlock();
    PythonExit::keep_other_threads();
    return in_time;
  }

  // Calls `callback` when the operation has ended. With `at_once` the thread that ends
  // it does, for what is short. So it does in a callback, because PyTorch's PowerSGD
  // hook waits there for another future, which its own thread cannot complete. A
  // callback must not wait for other callbacks: neither gloo nor NCCL promises that.
  void when_ended(const PendingPtr& pending, Callback callback, bool at_once = false) {
    if (pending->ended()) return callback(); // also in a fork, where nobody unlocks
    check_process();
    Lock lock(mutex_);
    if (!pending->ended()) {
      auto& list = at_once || calls_back_ ? pending->at_once : pending->callbacks;
      return list.push_back(std::move(callback));
    }
    lock.unlock();
    callback();
  }
  static bool calls_back() { return calls_back_; }

  // Waits for what other ranks need of this one: collectives, which have deadlines, and
  // sends for a while, because perhaps nobody receives them.
  void drain() {
    if (forks_ != fork_count()) return; // the operations belong to the parent
    const auto none = [this](const auto& counts) {
      return std::ranges::none_of(
          unfinished_, [&](const auto& each) { return counts(each->note().kind); });
    };
    const auto is_send = [](Kind kind) { return kind == Kind::send; };
    wait([&] { return none(std::not_fn(is_message)); }, kNever);
    wait([&] { return none(is_send); }, in(kLastMoments));
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
    goodbye_ = in(kLastMoments);
    end_all(*closed_, lock);
  }

  void end_threads() {
    if (forks_ != fork_count()) return; // a fork has no thread that could be joined
    threads_.end(goodbye_ + kLateThread);
  }

  // The same on all ranks.
  void abort() {
    if (forks_ == fork_count()) fail(names_.who(rank_) + " has aborted the group");
    close("its group was aborted");
  }

 private:
  using Lock = std::unique_lock<std::mutex>;

  void add_thread(void (Engine::*serve)(Lock&), const std::string& job) {
    threads_.add(names_.backend + "_" + job, [self = shared_from_this(), serve] {
      Lock lock(self->mutex_);
      (self.get()->*serve)(lock);
    });
  }

  void add(const PendingPtr& pending) {
    check_process();
    PythonExit::keep_other_threads();
    const std::lock_guard lock(mutex_);
    Note& note = pending->arguments->note;
    TORCH_CHECK_WITH(DistBackendError, !closed_, "Backend ", names_.backend,
        " cannot run ", describe(note), ": ", *closed_);
    if (!is_message(note.kind)) note.sequence = ++sequence_;
    if (failure_) return pending->end(pending->error_of(*failure_, names_, rank_));
    unfinished_.push_back(pending);
    start_clock();
  }

  bool has_work() const { return !unfinished_.empty() || (failure_ && !told_); }

  void wake_driver() {
    driver_.notify_one();
    changed_.notify_all(); // there may be a new deadline
    transport_->wake();
  }

  // [drive]
  // Makes all calls of the transport, until done().
  template <class Done>
  void drive(Lock& lock, const Done& done) {
    driving_ = true;
    for (int idle = 0; !done(); check_deadline(lock)) {
      begin_operations();
      const bool tell = failure_ && !std::exchange(told_, true);
      lock.unlock();
      if (tell) quietly([this] { transport_->announce(*failure_); });
      if (advance_all()) {
        idle = 0;
      } else {
        transport_->rest(idle++);
      }
      lock.lock();
    }
    driving_ = false;
    changed_.notify_all(); // another call may want to drive
  }

  void drive_for_others(Lock& lock) {
    const auto closed = [this] { return closed_ && (told_ || !failure_); };
    while (!closed()) {
      if (driving_ || callers_ > 0 || !has_work()) {
        driver_.wait(lock);
      } else {
        drive(lock, [&] { return closed() || callers_ > 0 || !has_work(); });
      }
    }
    while (driving_) changed_.wait(lock);
    driving_ = true; // for ever
    const bool orderly = !failure_;
    lock.unlock();
    for (const auto& each : std::exchange(begun_, {})) each->steps = Steps();
    quietly([&] {
      Steps steps = transport_->leave(orderly);
      for (int idle = 0; !steps.done() && Clock::now() < goodbye_; ++idle) {
        if (!steps.advance()) transport_->rest(idle);
      }
    });
    lock.lock();
  }
  // [/drive]

  // For what helps other ranks, who find out at their deadlines if it fails.
  template <class Function>
  static void quietly(const Function& function) {
    try {
      function();
    } catch (const std::exception&) {
    }
  }

  // All messages, and one collective at a time.
  void begin_operations() {
    bool behind = false;
    for (const auto& each : unfinished_) {
      const bool waits = !is_message(each->note().kind) && std::exchange(behind, true);
      if (!waits && !std::exchange(each->begun, true)) begun_.push_back(each);
    }
  }

  // Advances all that can advance. Only now and then it looks for reasons why others
  // never will.
  bool advance_all() {
    const auto now = Clock::now();
    const bool check = now >= next_check_;
    bool moved = false;
    try {
      const auto reason = check ? transport_->failure() : std::nullopt;
      if (check) next_check_ = now + kCheckEvery;
      if (reason) fail(*reason);
      for (const auto& each : begun_) moved |= each->ended() || advance(each, check);
    } catch (const std::exception& error) {
      const auto* ours = dynamic_cast<const c10::Error*>(&error);
      fail(ours ? ours->what_without_backtrace() : error.what());
    }
    std::erase_if(begun_, [](const auto& each) {
      if (each->ended()) each->steps = Steps(); // a Work may keep the rest
      return each->ended();
    });
    return moved;
  }

  // Returns whether the operation got on, or ended.
  bool advance(const PendingPtr& pending, bool check) {
    if (pending->operation.owner == nullptr) {
      pending->operation = pending->arguments->operation(pending->arguments);
      pending->steps = begin(*transport_, pending->operation);
      check = true;
    }
    const bool moved = pending->steps.advance();
    if (pending->steps.done()) {
      pending->arguments->finish();
      end(pending);
      return true;
    }
    if (!check) return moved;
    const auto missing = pending->steps.missing();
    Lock lock(mutex_);
    pending->missing = missing;
    lock.unlock();
    const auto reason = transport_->lost(missing);
    // A rank may show its last data, or announce why it cannot go on, and then leave:
    // look for these once more.
    if (!reason || pending->steps.advance()) return moved || reason;
    const auto announced = transport_->failure();
    throw std::runtime_error(announced.value_or(*reason));
  }

  // [deadlines]
  // The first collective has a deadline, from when it is the first.
  void start_clock() {
    deadline_ = kNever;
    for (const auto& each : unfinished_) {
      if (is_message(each->note().kind)) continue;
      if (each->deadline == kNever) each->deadline = in(each->arguments->timeout);
      deadline_ = each->deadline;
      break;
    }
  }

  void check_deadline(Lock& lock) {
    if (Clock::now() < deadline_) return;
    std::string reason;
    for (const auto& each : unfinished_) {
      if (each->deadline == deadline_) reason = each->timed_out(names_, rank_);
    }
    lock.unlock();
    fail(reason);
    lock.lock();
  }

  // Waits for a change.
  void sleep(Lock& lock, Clock::time_point limit) {
    changed_.wait_until(lock, std::min(limit, deadline_));
    check_deadline(lock);
  }
  // [/deadlines]

  void fail(const std::string& reason) {
    Lock lock(mutex_);
    if (!failure_) failure_ = reason;
    end_all(*failure_, lock);
  }

  void end_all(const std::string& reason, Lock& lock) {
    wake_driver(); // which tells the others
    end(std::exchange(unfinished_, {}), &reason, lock);
  }

  void end(const PendingPtr& pending) {
    Lock lock(mutex_);
    const auto place = std::ranges::find(unfinished_, pending);
    if (place == unfinished_.end()) return; // another thread has ended it
    std::list<PendingPtr> ended;
    ended.splice(ended.begin(), unfinished_, place);
    end(std::move(ended), nullptr, lock);
  }

  // Unlocks. The last owner of a tensor may need Python's lock to let go of it, and the
  // thread that has that lock may wait for the mutex: none goes while it is held.
  void end(std::list<PendingPtr> ended, const std::string* reason, Lock& lock) {
    std::vector<Callback> now;
    for (const auto& each : ended) {
      each->end(reason ? each->error_of(*reason, names_, rank_) : nullptr);
      for (auto& one : std::exchange(each->at_once, {})) now.push_back(std::move(one));
      for (auto& one : std::exchange(each->callbacks, {}))
        calls_.push_back(std::move(one));
    }
    start_clock();
    changed_.notify_all();
    lock.unlock();
    for (const auto& callback : now) callback();
  }

  // [callbacks]
  void call_back(Lock& lock) {
    calls_back_ = true;
    while (!closed_ || !calls_.empty()) {
      if (calls_.empty()) {
        sleep(lock, kNever);
        continue;
      }
      auto callback = std::move(calls_.front());
      calls_.pop_front();
      lock.unlock();
      callback(); // may take any time, and needs Python's lock
      callback = nullptr;
      lock.lock();
      changed_.notify_all(); // a thread may wait for the future
    }
  }
  // [/callbacks]

  static inline thread_local bool calls_back_ = false;

  const Names names_;
  const int rank_;
  const bool can_block_;
  const uint64_t forks_ = fork_count();

  Threads threads_;
  mutable std::mutex mutex_; // guards these; never held while anything is called
  std::condition_variable changed_, driver_;
  int callers_ = 0; // synchronous calls that drive, or want to
  bool driving_ = false; // a thread drives
  std::atomic<uint64_t> sequence_{0}; // of the collectives
  std::list<PendingPtr> unfinished_;
  std::deque<Callback> calls_;
  Clock::time_point deadline_ = kNever; // of the first collective
  Clock::time_point goodbye_; // the end of leaving
  std::optional<std::string> failure_, closed_;
  bool told_ = false; // the others know of the failure

  // Only the thread that drives uses these.
  std::unique_ptr<Transport> transport_; // destroyed after the steps
  std::vector<PendingPtr> begun_;
  Clock::time_point next_check_;
};

} // namespace frame
