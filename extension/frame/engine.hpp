#pragma once

#include <deque>
#include <list>

#include "pending.hpp"
#include "process.hpp"
#include "threads.hpp"

namespace frame {

constexpr milliseconds kCheckEvery{50}; // the state of the other ranks
// after the last moments, until a thread is left alone
constexpr milliseconds kLateThread{500};
// About what it costs to hand an operation to a thread; more bytes take longer.
constexpr microseconds kBrief{40};
constexpr uint64_t kFewBytes = 64 << 10;

// Runs the operations of one rank of a group, by three rules:
//
//   A call that waits drives, if the transport cannot block. One thread drives
//   everything else. One thread calls back, in the order in which operations end.
//
// A small collective that comes while nothing else runs may end before any of this
// begins: see at_once().
//
// To drive is to call the transport, which one thread does at a time. Collectives run
// one after another, messages side by side. All fail together: the first failure ends
// the group. Each thread that waits enforces the deadline, as the driver may hang.
//
// The threads own the engine. One that is stuck in the transport, or in a callback,
// keeps everything alive that it may still use, also after the end of the group.
class Engine : public std::enable_shared_from_this<Engine> {
 public:
  using Callback = Pending::Callback;

  // The right to go on with a collective that at_once() has begun and not ended. Until
  // submit() or run() takes it, no thread calls the transport. If neither does, because
  // the caller throws before, the group fails: others may have the data of this rank.
  struct GiveUp {
    void operator()(Engine* engine) const { engine->give_up(); }
  };
  using Turn = std::unique_ptr<Engine, GiveUp>;

  explicit Engine(std::unique_ptr<Transport> transport)
      : names_(transport->names()),
        rank_(transport->rank()),
        can_block_(transport->can_block()),
        state_(can_block_ ? kNotAtOnce : 0),
        transport_(std::move(transport)) {}

  // Throws if it cannot start the threads. The other ranks have begun, so this one tells
  // them itself: the driver is the last thread, and not there yet.
  void start() {
    try {
      const std::lock_guard lock(mutex_);
      add_thread(&Engine::call_back, "callbacks");
      add_thread(&Engine::drive_for_others, "driver");
    } catch (const std::system_error& error) {
      const auto reason = names_.who(rank_) + " " + shortage_of_threads(error);
      quietly([&] { transport_->announce(reason); });
      close(reason);
      C10_THROW_ERROR(DistStoreError,
          "Backend " + names_.backend + ": " + names_.who(rank_) +
              " cannot join group \"" + names_.group + "\": " + reason);
    }
  }

  const Names& names() const { return names_; }
  uint64_t sequence() const { return state_ / kOneCollective; }
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

  // Tries to run a collective on this thread alone: without the mutex, an allocation or
  // a coroutine. If it returns false, it may have begun: submit() or run() it with the
  // turn.
  bool at_once(Arguments& arguments, Turn& turn) {
    check_process();
    uint64_t state = state_;
    if (state % kOneCollective != 0) return false; // something runs
    const uint64_t begun = state + kOneCollective;
    if (!state_.compare_exchange_strong(state, begun | kLooking)) return false;
    turn.reset(this);
    arguments.note.sequence = begun / kOneCollective;
    bool ended = false;
    quietly([&] { // the steps find the same problem, and fail
      const auto& operation = arguments.operation();
      ended = operation.packed == nullptr && transport_->at_once(operation);
    });
    if (ended) {
      turn.release();
      state_ &= ~kLooking;
      arguments.finish(); // may throw, which concerns this rank alone
    }
    PythonExit::keep_other_threads();
    return ended;
  }

  // Begins an operation.
  void submit(const PendingPtr& pending, Turn turn = nullptr) {
    add(pending, std::move(turn));
    if (can_block_) wake_driver();
  }

  // Leaves to the thread what has begun, unless this operation, the last, ends in less
  // time than it takes to wake the thread.
  void leave(const PendingPtr& pending) {
    if (can_block_) return;
    const bool brief = pending->note().bytes <= kFewBytes;
    const auto limit = Clock::now() + (brief ? kBrief : microseconds(0));
    wait([&] { return pending->ended(); }, limit);
  }

  // Runs an operation to its end.
  void run(const PendingPtr& pending, Turn turn = nullptr) {
    add(pending, std::move(turn));
    if (can_block_) wake_driver();
    wait([&] { return pending->ended(); }, kNever);
  }

  // [wait]
  // Returns whether done(), as soon as it is, or at the limit. The mutex is held while
  // it is asked.
  template <class Done>
  bool wait(const Done& done, Clock::time_point limit) {
    check_process();
    const WithoutGil without_gil; // the driver may need the GIL to let go of a tensor
    const bool drives = !can_block_;
    Lock lock(mutex_);
    callers_ += drives;
    for (bool late = false; !done() && !late; late = Clock::now() >= limit) {
      if (drives && has_work()) {
        drive(lock, [&] { return done() || !has_work(); }, limit);
      } else {
        sleep(lock, changed_, limit);
      }
    }
    if (failure_ && !told_) tell_others(lock);
    callers_ -= drives;
    if (drives && has_work()) driver_.notify_one();
    const bool in_time = done();
    lock.unlock();
    PythonExit::keep_other_threads();
    return in_time;
  }
  // [/wait]

  // Calls back when the operation has ended: on the thread for that; in a callback, on
  // the thread that ends it, because PyTorch's PowerSGD hook waits there for another
  // future, which its own thread cannot complete. A callback must not wait for other
  // callbacks: neither gloo nor NCCL promises that. Where it waits for a future that this
  // thread is to complete later, it hangs: no timeout ends PyTorch's Future.wait().
  void when_ended(const PendingPtr& pending, Callback callback) {
    if (pending->ended()) return call_here(callback);
    add_callback(
        *pending, calls_back_ ? pending->at_end : pending->callbacks, callback);
  }
  // Calls back before any thread learns that the operation has ended: a profiler may
  // stop as soon as it has. The callback must be short.
  void before_end(const PendingPtr& pending, Callback callback) {
    add_callback(*pending, pending->before_end, callback);
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
    wait([&] { return none(std::not_fn(is_message)); }, kNever);
    wait(
        [&] { return none([](Kind k) { return k == Kind::send; }); }, in(kLastMoments));
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
    if (!closed_) goodbye_ = in(kLastMoments); // threads read it without the mutex
    if (!closed_) closed_ = reason;
    state_ |= kNotAtOnce;
    end_all(*closed_, lock);
  }

  void end_threads() {
    if (forks_ != fork_count()) return; // a fork has no thread that could be joined
    threads_.end(goodbye_ + kLateThread);
  }

  // Ends all operations, on all ranks.
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

  void add_callback(Pending& pending, std::vector<Callback>& list, Callback& callback) {
    check_process();
    Lock lock(mutex_);
    const bool ended = pending.ended();
    if (!ended) list.push_back(std::move(callback));
    lock.unlock();
    if (ended) call_here(callback);
  }

  void call_here(const Callback& callback) {
    callback();
    wake_waiting();
  }

  // A callback may have completed a future for which another thread waits.
  void wake_waiting() {
    if (forks_ != fork_count()) return; // where nobody waits, and nobody unlocks
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
  }

  void add(const PendingPtr& pending, Turn turn) {
    check_process();
    PythonExit::keep_other_threads();
    std::list<PendingPtr> one{pending}; // throws, if at all, while it has the turn
    const std::lock_guard lock(mutex_);
    Note& note = pending->arguments->note;
    const bool tried = turn.release() != nullptr; // at_once()
    state_ |= kRunning;
    if (tried) state_ &= ~kLooking;
    TORCH_CHECK_WITH(DistBackendError, !closed_, "Backend ", names_.backend,
        " cannot run ", describe(note), ": ", *closed_);
    if (!is_message(note.kind) && !tried) {
      note.sequence = (state_ += kOneCollective) / kOneCollective;
    }
    if (failure_) return pending->end(pending->error_of(*failure_, names_, rank_));
    unfinished_.splice(tried ? unfinished_.begin() : unfinished_.end(), one);
    start_clock();
  }

  void give_up() {
    state_ &= ~kLooking;
    quietly([this] {
      fail(names_.who(rank_) +
          " cannot go on with a collective that it has begun; the error of its call "
          "says why");
    });
  }

  bool has_work() const { return !unfinished_.empty() || (failure_ && !told_); }

  void wake_driver() {
    driver_.notify_one();
    if (can_block_) { // others enforce the deadline, which may be new
      changed_.notify_all();
      called_.notify_one();
    }
    transport_->wake();
  }

  // Looks again and again, until done() or the limit. The threads that do so let each
  // other look; one that has found nothing rests.
  template <class Done>
  void drive(Lock& lock, const Done& done, Clock::time_point limit) {
    auto now = Clock::now();
    Idle idle{0, now};
    while (!done()) {
      const uint64_t seen = changes_;
      const auto until = std::min({limit, deadline_, now + kCheckEvery});
      bool moved = look(lock, now);
      if (!moved && now < limit) {
        lock.unlock();
        moved = transport_->rest(idle, until, [&] {
          const std::lock_guard again(lock); // unlocks when it has looked
          return changes_ != seen || look(lock, now);
        });
        lock.lock();
      }
      check_deadline(lock, now);
      if (now >= limit) return; // with a last look after a rest
      now = Clock::now();
      ++idle.looks;
      if (moved) idle = {0, now};
    }
  }

  // Calls the transport, unless another thread does: begins and advances what can
  // advance. Returns whether anything could.
  bool look(Lock& lock, Clock::time_point now) {
    if (state_.fetch_or(kLooking) & kLooking) return false;
    begin_operations();
    const bool tell = failure_ && !told_;
    const bool late = now >= deadline_;
    lock.unlock();
    if (tell) quietly([this] { transport_->announce(*failure_); });
    const bool moved = advance_all(now, late);
    lock.lock();
    if (tell) {
      told_ = true;
      changed_.notify_all();
      driver_.notify_one(); // may wait for this alone, when the group is closed
    }
    const bool all_ended = unfinished_.empty() && begun_.empty();
    state_ &= ~(all_ended ? kLooking | kRunning : kLooking);
    return moved;
  }

  // Other ranks learn of the failure before the caller does, who may end the process.
  void tell_others(Lock& lock) {
    if (!can_block_) look(lock, Clock::now());
    if (can_block_) changed_.wait_for(lock, kCheckEvery, [this] { return told_; });
  }

  void drive_for_others(Lock& lock) {
    const auto closed = [this] { return closed_ && (told_ || !failure_); };
    const auto left_alone = [this] { return has_work() && callers_ == 0; };
    while (!closed()) {
      driver_.wait(lock, [&] { return closed() || left_alone(); });
      drive(lock, [&] { return closed() || !left_alone(); }, kNever);
    }
    const bool orderly = !failure_;
    lock.unlock();
    while (state_.fetch_or(kLooking) & kLooking) std::this_thread::yield();
    for (const auto& each : std::exchange(begun_, {})) each->steps = Steps();
    quietly([&] {
      Steps steps = transport_->leave(orderly);
      const auto advance = [&] { return steps.advance(); };
      for (Idle idle{0, Clock::now()}; !steps.done() && Clock::now() < goodbye_;
          ++idle.looks) {
        if (!advance()) transport_->rest(idle, goodbye_, advance);
      }
    });
    lock.lock();
  }

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

  // Advances all that can advance. It looks only now and then for reasons why others
  // never will.
  bool advance_all(Clock::time_point now, bool check) {
    bool moved = false;
    try {
      const bool is_new = std::ranges::any_of(
          begun_, [](const auto& each) { return !each->operation.owner; });
      // To ask memory for a failure is cheap; to ask the kernel who lives is not.
      check |= now >= next_check_ || (is_new && can_block_);
      const auto reason = check || is_new ? transport_->failure() : std::nullopt;
      if (check) next_check_ = now + kCheckEvery;
      if (reason) fail(*reason);
      for (const auto& each : begun_) {
        if (!each->operation.owner) {
          each->operation = each->arguments->operation(each->arguments);
          each->steps = begin(*transport_, each->operation);
        }
        moved |= each->ended() || advance(each, check);
      }
    } catch (const std::exception&) {
      fail(text_of(std::current_exception()));
    }
    std::erase_if(begun_, [](const auto& each) {
      if (each->ended()) each->steps = Steps(); // a Work may keep the rest
      return each->ended();
    });
    return moved;
  }

  // [advance]
  // Returns whether the operation got on, or ended.
  bool advance(const PendingPtr& pending, bool check) {
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
  // [/advance]

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

  void check_deadline(Lock& lock, Clock::time_point now) {
    if (now < deadline_) return;
    for (const auto& each : unfinished_) {
      if (each->deadline != deadline_) continue;
      const auto reason = each->timed_out(names_, rank_);
      lock.unlock();
      fail(reason);
      return lock.lock();
    }
  }

  // Waits for a change.
  void sleep(Lock& lock, std::condition_variable& change, Clock::time_point limit) {
    change.wait_until(lock, std::min(limit, deadline_));
    check_deadline(lock, Clock::now());
  }

  void fail(const std::string& reason) {
    Lock lock(mutex_);
    state_ |= kNotAtOnce;
    if (!failure_) failure_ = reason;
    end_all(*failure_, lock);
  }

  void end_all(const std::string& reason, Lock& lock) {
    wake_driver(); // which tells the others
    called_.notify_one();
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
    start_clock(); // of the next: callbacks may last longer than the deadlines of these
    std::vector<Callback> now;
    for (const auto& each : ended) {
      while (!each->before_end.empty()) { // nobody else ends it meanwhile
        const auto callbacks = std::exchange(each->before_end, {});
        lock.unlock();
        for (const auto& callback : callbacks) call(callback);
        lock.lock();
      }
    }
    for (const auto& each : ended) {
      each->end(reason ? each->error_of(*reason, names_, rank_) : nullptr);
      for (auto& one : std::exchange(each->at_end, {})) now.push_back(std::move(one));
      for (auto& one : std::exchange(each->callbacks, {}))
        calls_.push_back(std::move(one));
    }
    ++changes_;
    const bool calls = !calls_.empty();
    lock.unlock();
    changed_.notify_all();
    if (calls) called_.notify_one();
    transport_->wake();
    for (const auto& callback : now) call(callback);
    if (!now.empty()) wake_waiting();
  }

  // An exception of a callback ends the process, as with gloo: the thread that ends an
  // operation has nobody to raise it to, and other callbacks would never be called.
  static void call(const Callback& callback) {
    try {
      callback();
    } catch (const std::exception&) {
      std::terminate(); // which prints it
    }
  }

  // [callbacks]
  void call_back(Lock& lock) {
    calls_back_ = true;
    while (!closed_ || !calls_.empty()) {
      if (calls_.empty()) {
        sleep(lock, called_, kNever);
        continue;
      }
      auto callback = std::move(calls_.front());
      calls_.pop_front();
      lock.unlock();
      call(callback); // may take any time, and needs Python's lock
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
  // The number of collectives that have begun, and what excludes at_once(): a thread
  // looks, others run, or never. Threads that do not hold the mutex change it.
  static constexpr uint64_t kLooking = 1, kRunning = 2, kNotAtOnce = 4,
                            kOneCollective = 8;
  std::atomic<uint64_t> state_;
  const uint64_t forks_ = fork_count();

  Threads threads_;
  // Guards the following; not held while steps, callbacks or destructors run.
  mutable std::mutex mutex_;
  std::condition_variable changed_, driver_, called_; // for callers, and the threads
  int callers_ = 0; // that drive
  uint64_t changes_ = 0; // what another thread may wait for
  std::list<PendingPtr> unfinished_;
  std::deque<Callback> calls_;
  Clock::time_point deadline_ = kNever; // of the first collective
  Clock::time_point goodbye_; // the end of leaving
  std::optional<std::string> failure_, closed_;
  bool told_ = false; // the others know of the failure

  // Only the thread that looks uses these.
  std::unique_ptr<Transport> transport_; // destroyed after the steps
  std::vector<PendingPtr> begun_;
  Clock::time_point next_check_;
};

} // namespace frame
