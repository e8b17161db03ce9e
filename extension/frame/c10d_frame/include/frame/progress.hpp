#pragma once

#include "callers.hpp"
#include "running.hpp"
#include "schedule.hpp"
#include "turn.hpp"

namespace frame {

// The operations of a rank that have not ended, the threads that wait for them, and how they
// end: each with its result, or all together, for the first failure ends the group. Any
// thread may call the public methods. The table at Progress says what the mutex guards.
class OpenOperations {
 public:
  using Lock = Callers::Lock;

  explicit OpenOperations(std::unique_ptr<Transport> transport)
      : names_(transport->names()),
        rank_(transport->rank()),
        can_block_(transport->can_block()),
        turns_(!can_block_),
        transport_(std::move(transport)) {}

  const Names& names() const { return names_; }
  int rank() const { return rank_; }
  bool can_block() const { return can_block_; }
  uint64_t collectives() const { return turns_.collectives(); }
  Transport& transport() { return *transport_; }

  // Adds a callback to a list of an operation; returns false if it has ended.
  bool add_callback(
      Pending& pending, Callers::Callbacks& list, Callers::Callback& callback) {
    const Lock lock(mutex_);
    if (pending.ended()) return false;
    list.push_back(std::move(callback));
    return true;
  }
  // A thread may wait for something that is no operation, such as a future.
  void tell_all() {
    const Lock lock(mutex_);
    callers_.tell_all();
    wake_resting();
  }

  // Threads that rest look again, at the latest when their rest is over.
  void wake() {
    quietly([this] { transport_->wake(); });
  }

  // Ends all operations, on all ranks. Not with the turn.
  void fail(const std::string& reason) {
    Lock lock(mutex_);
    fail(lock, reason);
    callers_.call_those(lock);
  }

  // Ends all operations, and takes no more. The threads leave, and the transport does.
  void stop(const std::string& reason) {
    Lock lock(mutex_);
    if (!schedule_.closed()) goodbye_ = in(kLastMoments);
    turns_.forbid_at_once();
    finish_all(lock, schedule_.close(reason), schedule_.closed());
    callers_.call_those(lock);
  }
  Clock::time_point goodbye() const { return goodbye_; } // the end of leaving

 protected:
  ~OpenOperations() = default;

  // Fails the group if the first collective is late.
  void check_deadline(Lock& lock, Clock::time_point now) {
    auto late = schedule_.late(now);
    if (!late) return;
    const auto reason = late->timed_out(names_, rank_);
    late.reset(); // the schedule still has it; afterwards it may be the last: see finish()
    fail(lock, reason);
    callers_.call_those(lock);
  }

  void fail(Lock& lock, const std::string& reason) {
    turns_.forbid_at_once();
    finish_all(lock, schedule_.fail(reason), schedule_.failure());
  }

  void finish_all(
      Lock& lock, Schedule::List ended, const std::optional<std::string>& reason) {
    lock.unlock();
    finish(ended, reason);
    ended.clear(); // not with the lock: see finish()
    lock.lock();
  }

  // Ends operations that this thread has taken out, with an error if there is a reason,
  // which is never changed. No lock is held: the last owner of a tensor may need Python's
  // lock to let go of it, and the thread that has that lock may wait for the mutex.
  void finish(const Schedule::List& ended, const std::optional<std::string>& reason) {
    Lock lock(mutex_);
    for (const auto& each : ended) callers_.call_now(lock, each->before_end);
    for (const auto& each : ended) {
      callers_.call_now(lock, each->before_end); // what has come meanwhile
      each->end(reason ? each->error_of(*reason, names_, rank_) : nullptr);
      callers_.call_soon(std::exchange(each->soon, {}));
      callers_.call_later(std::exchange(each->later, {}));
    }
    schedule_.set_ended(ended.size());
    callers_.tell_all();
    if (schedule_.must_tell() || schedule_.closed()) {
      callers_.wake_driver();
      callers_.wake_caller();
    }
    lock.unlock();
    wake();
  }

  // A thread that drives may wait for a future, too, and rests in the transport.
  void wake_resting() {
    if (resting_ > 0) wake();
  }

  const Names names_;
  const int rank_;
  const bool can_block_;
  Turns turns_;
  std::mutex mutex_;
  Callers callers_;
  Schedule schedule_;
  Clock::time_point goodbye_;
  int resting_ = 0; // threads that rest while they drive
  const std::unique_ptr<Transport> transport_;
};

// Runs the operations of one rank of a group. Collectives run one after another,
// messages side by side. All fail together: the first failure ends the group.
//
// To drive is to look again and again: to take the turn, and to call the transport,
// which begins and advances operations. Threads that drive let each other look; one
// that has found nothing rests.
//
//     what                            which thread may touch it
//     schedule_, callers_, and the    any that holds the mutex, which none holds while
//     callbacks of a Pending, and     steps, callbacks or destructors run
//     its end
//     running_, the transport, and    the one that has the turn
//     the steps of a Pending
//     wake() and rest() of the        any, and each that drives
//     transport
//     missing() of a Pending          any: it has a mutex of its own
//     turns_                          any: see Turns
//
// Methods that get a lock of the mutex let go of it meanwhile.
class Progress final : public OpenOperations {
 public:
  using OpenOperations::OpenOperations;

  // Tries to run a call on this thread alone. If it returns false with the turn, the call
  // has begun, and add() must get that turn.
  bool at_once(Arguments& arguments, Turn& turn) {
    Note& note = arguments.note;
    turn = turns_.take_if_idle(is_message(note.kind) ? nullptr : &note.sequence);
    bool ended = false;
    if (turn) {
      quietly([&] { // the steps find the same problem, and fail
        const auto& operation = arguments.operation();
        ended = operation.packed == nullptr && transport_->at_once(operation);
      });
    }
    if (ended) turn = Turn();
    // Another thread may have found it taken, and sleeps since.
    if (ended && turns_.is_busy()) wake();
    return ended;
  }

  // Adds an operation, which at_once() may have begun.
  void add(const PendingPtr& pending, Turn& begun) {
    Schedule::List one{pending}; // throws, if at all, before anything has changed
    Lock lock(mutex_);
    Turn turn = std::move(begun);
    const bool has_begun = static_cast<bool>(turn);
    Note& note = pending->arguments->note;
    TORCH_CHECK_WITH(DistBackendError, !schedule_.closed(), "Backend ", names_.backend,
        " cannot run ", describe(note), ": ", *schedule_.closed());
    // First, or at_once() could get a later number, and run before.
    turns_.set_busy(true);
    if (!is_message(note.kind) && !has_begun) {
      note.sequence = turns_.count_collective();
    }
    if (schedule_.failure()) {
      turn = Turn();
      schedule_.set_ending(one.size());
      lock.unlock();
      return finish(one, schedule_.failure());
    }
    schedule_.add(std::move(one), has_begun);
    callers_.tell_all();
    if (!can_block_) return; // this thread looks itself
    callers_.wake_driver();
    callers_.wake_caller(); // which enforces the deadline, too
    wake();
  }

  // [wait]
  // Returns whether done(), as soon as it is, or at the limit. The mutex is held while
  // it is asked. If the transport cannot block, the thread drives; otherwise it only
  // enforces the deadline.
  template <class Done>
  bool wait(const Done& done, Clock::time_point limit) {
    Lock lock(mutex_);
    bool ended =
        done(); // once true, it counts: Work::getFuture() may make it false again
    for (bool late = false; !ended && !late; ended = done()) {
      if (!can_block_ && schedule_.has_work()) {
        const Callers::Drives drives(callers_);
        drive(lock, [&] { return done() || !schedule_.has_work(); }, limit);
      } else {
        callers_.wait(lock, std::min(limit, schedule_.deadline()));
        check_deadline(lock, Clock::now());
      }
      late = Clock::now() >= limit;
    }
    if (schedule_.must_tell()) tell_others(lock);
    if (schedule_.has_work()) callers_.wake_driver(); // which goes on
    return ended;
  }
  // [/wait]

  // Waits for what other ranks need of this one: collectives, which have deadlines, and
  // sends for a while, because perhaps nobody receives them.
  void drain() {
    const auto has = [this](const auto& counts) {
      return schedule_.has(counts) || schedule_.is_ending();
    };
    wait([&] { return !has(std::not_fn(is_message)); }, kNever);
    const auto is_send = [](Kind kind) { return kind == Kind::send; };
    wait([&] { return !has(is_send); }, in(kLastMoments));
  }

  // For a thread of its own: drives while no thread of the program does, and leaves.
  void drive_for_others() {
    Lock lock(mutex_);
    const auto over = [this] { return schedule_.closed() && !schedule_.must_tell(); };
    const auto is_wanted = [this] {
      return schedule_.has_work() && callers_.none_drives();
    };
    while (!over()) {
      callers_.wait_as_driver(lock, [&] { return over() || is_wanted(); });
      drive(lock, [&] { return over() || !is_wanted(); }, kNever);
    }
    const bool orderly = !schedule_.failure();
    lock.unlock();
    // Nobody gets the turn again: the transport has left. One that has it may hang.
    while (!(last_turn_ = turns_.take()) && Clock::now() < goodbye_) {
      sleep_until(in(milliseconds(1)));
    }
    if (last_turn_) quietly([&] { running_.say_goodbye(orderly, goodbye_); });
  }

  // [callbacks]
  // For a thread of its own: calls back, in the order in which operations end.
  void call_back() {
    Lock lock(mutex_);
    while (!schedule_.closed() || schedule_.is_ending() || callers_.has_calls()) {
      if (callers_.has_calls()) {
        callers_.call_next(lock);
        wake_resting();
      } else {
        callers_.wait_for_calls(lock, schedule_.deadline());
      }
      check_deadline(lock, Clock::now());
    }
  }
  // [/callbacks]

 private:
  // Looks again and again, until done() or the limit.
  template <class Done>
  void drive(Lock& lock, const Done& done, Clock::time_point limit) {
    auto now = Clock::now();
    Idle idle{0, now};
    while (!done()) {
      const uint64_t seen = callers_.changes();
      const auto until =
          std::min({limit, schedule_.deadline(), now + running_.check_every()});
      bool moved = look(lock, now);
      if (!moved && now < limit) {
        ++resting_;
        lock.unlock();
        moved = rest(idle, until, [&] {
          Lock again(mutex_);
          return callers_.changes() != seen || look(again, now);
        });
        lock.lock();
        --resting_;
      }
      check_deadline(lock, now);
      if (now >= limit) break; // with a last look after a rest
      now = Clock::now();
      ++idle.looks;
      if (moved) idle = {0, now};
    }
    // Another thread may have found the turn taken, and sleeps since.
    if (schedule_.has_work()) wake_resting();
  }

  bool rest(const Idle& idle, Clock::time_point limit, const Transport::Look& look) {
    try {
      return transport_->rest(idle, limit, look);
    } catch (...) {
      fail(text_of(std::current_exception()));
      return true;
    }
  }

  // Takes the turn, unless another thread has it: begins and advances what can advance.
  // Returns whether anything could.
  bool look(Lock& lock, Clock::time_point now) {
    Turn turn = turns_.take();
    if (!turn) return false;
    running_.add(schedule_.take_next());
    const auto failure = schedule_.must_tell() ? schedule_.failure() : std::nullopt;
    const bool late = now >= schedule_.deadline();
    lock.unlock();
    if (failure) quietly([&] { transport_->announce(*failure); });
    const bool told = failure && transport_->has_told();
    const bool moved = advance(now, late);
    lock.lock();
    if (failure) announced_ = true;
    if (told) {
      schedule_.set_told();
      callers_.tell_all();
      callers_.wake_driver(); // may wait for this alone, when the group is closed
    }
    if (schedule_.empty() && running_.empty()) turns_.set_busy(false);
    turn = Turn();
    callers_.call_those(lock);
    return moved;
  }

  // Advances what has begun. Returns whether anything got on, or ended.
  bool advance(Clock::time_point now, bool late) {
    bool moved = true;
    try {
      moved = running_.advance(now, late, [this](const PendingPtr& pending) {
        Lock lock(mutex_);
        const auto ended = schedule_.take_out(pending);
        lock.unlock();
        finish(ended, std::nullopt);
      });
    } catch (...) {
      Lock lock(mutex_);
      moved = !schedule_.failure(); // or it throws again, until the others know
      if (moved) fail(lock, text_of(std::current_exception()));
    }
    running_.drop_ended();
    return moved;
  }

  // Other ranks learn of the failure before the caller does, who may end the process.
  void tell_others(Lock& lock) {
    if (!can_block_) look(lock, Clock::now());
    if (schedule_.must_tell()) callers_.wake_driver(); // which goes on
    const auto begin = Clock::now();
    const auto limit = [&] { // another thread may hang in the transport
      return begin + (announced_ ? kLastMoments : kCheckEvery);
    };
    while (schedule_.must_tell() && Clock::now() < limit()) {
      callers_.wait(lock, limit());
    }
  }

  bool announced_ = false; // the failure; others may not know it yet
  Running running_{*transport_}; // its steps end before the transport does
  Turn last_turn_; // of the driver, for ever
};

} // namespace frame
