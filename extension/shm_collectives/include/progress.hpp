#pragma once

#include "callbacks.hpp"
#include "lanes.hpp"
#include "threads.hpp"

namespace shm_collectives {

// Runs the operations of one rank of a group. A caller that waits for one operation
// runs them all; while no caller waits, a thread does, which is started when it is
// first needed. Threads also call the callbacks of the program. A callback may take
// long, so another thread runs the operations meanwhile.
class Progress : public std::enable_shared_from_this<Progress> {
 public:
  Progress(Group group, WaitingPolicy policy)
      : group_(std::move(group)), policy_(policy), lanes_(group_) {}

  const Group& group() const { return group_; }
  const WaitingPolicy& policy() const { return policy_; }
  Channel& channel() { return lanes_.channel(); }
  Mailbox& mailbox() { return lanes_.mailbox(); }

  void check_process() const {
    TORCH_CHECK_WITH(DistBackendError, forks_ == fork_count(), "Backend shm: group \"",
        group_.name(),
        "\" belongs to the process that created it, not to a fork of it; call "
        "init_process_group in the new process");
  }

  void submit(OperationPtr operation, int lane) {
    check_process();
    Callbacks::keep_at_exit();
    const std::lock_guard lock(mutex_);
    TORCH_CHECK_WITH(DistBackendError, !closed_, "Backend shm cannot run ",
        describe(operation->call.note), ": ", closed_.value_or(""));
    submitted_.emplace_back(operation, lane);
    count(*operation, 1); // not before: what is counted must end
  }

  // Returns when `done()` is true, or at the limit.
  template <class Done>
  void wait(const Done& done, Clock::time_point limit) {
    check_process();
    call(done, limit, policy_);
    Callbacks::keep_at_exit();
  }

  // Leaves the operation to a thread, unless it ends in less time than it takes to
  // wake the thread. A large operation does not, nor one behind others.
  void leave(const Operation& operation) {
    if (operation.call.note.bytes <= kLarge && drivers_ == 0) {
      call([&] { return operation.ended(); }, in(kBrief), policy_.at_most(kBrief));
    } else {
      hand_over();
      group_.me().bell.ring(); // a thread that drives already can run this
    }
    Callbacks::keep_at_exit();
  }

  // Calls `callback` when the operation has ended: now, or on a thread, and then
  // behind the callbacks of earlier operations.
  void when_ended(
      const OperationPtr& operation, const std::function<void()>& callback) {
    if (forks_ != fork_count() && operation->ended()) return callback();
    check_process();
    std::unique_lock lock(mutex_);
    const bool behind = !closed_ && callbacks_.go_first();
    if (operation->keep(callback, Callbacks::current(), /*always=*/behind)) {
      if (operation->ended()) let_call(operation);
      return;
    }
    lock.unlock();
    callback();
  }

  // Waits until other ranks need nothing of this one: for all collectives, and for
  // sends while any operation advances. No rank may ever receive the remaining sends.
  void drain() {
    if (forks_ != fork_count()) return; // the operations belong to the parent
    call([&] { return collectives_ == 0; }, Clock::time_point::max(), policy_);
    for (uint64_t before = ~uint64_t{0}; sends_ > 0 && before != moves_;) {
      before = moves_;
      call([&] { return sends_ == 0; }, in(kGiveUp), policy_);
    }
  }

  // Ends all that was submitted, and the threads. Needed before the last owner goes.
  void close(const std::string& reason) {
    end_operations(reason);
    end_threads();
  }

  void end_operations(const std::string& reason) {
    if (forks_ != fork_count()) return;
    std::unique_lock lock(mutex_);
    if (!closed_) closed_ = reason;
    threads_.end();
    lock.unlock();
    while (driving_.test_and_set()) std::this_thread::yield();
    take_submitted();
    lanes_.close(*closed_);
    stop_driving();
    group_.me().bell.ring();
  }

  // Waits until threads have called the callbacks, except on one of them, where a
  // callback may call this, or what holds a tensor that has just ended. When Python
  // exits, a thread that does not come back may have what they need, and so this has a
  // limit.
  void end_threads() {
    if (forks_ != fork_count()) {
      new auto(shared_from_this()); // a fork has no thread that could be joined
      return;
    }
    call_without_threads();
    std::unique_lock lock(mutex_);
    auto limit = PythonExit::begun() ? kLastCallbacks : Threads::kNoLimit;
    if (Callbacks::current() || Threads::is_current()) limit = milliseconds{0};
    threads_.join(lock, limit);
    group_.me().left.store(true);
    group_.ring_others();
    group_.me().bell.ring();
    Callbacks::keep_at_exit();
  }

  // The same, on all ranks.
  void abort() {
    if (forks_ == fork_count()) {
      group_.fail(group_.who(group_.rank()) + " has aborted the group");
    }
    close("its group was aborted");
  }

 private:
  static constexpr milliseconds kCheckEvery{50}; // sleepers look after the others
  static constexpr milliseconds kGiveUp{1000}; // a send, at the end of the group
  static constexpr milliseconds kLastCallbacks{5000}; // when Python exits
  static constexpr milliseconds kStandBy{1}; // most callbacks are shorter
  static constexpr uint64_t kLarge = 64 << 10; // more bytes take longer than this:
  // about what it costs to hand over to a thread
  static constexpr microseconds kBrief{40};
  static constexpr microseconds kThreadYields{50}; // the caller may need the processor

  // [caller]
  // Drives for as long as the caller waits, and leaves what remains to others.
  template <class Done>
  void call(const Done& done, Clock::time_point limit, WaitingPolicy policy) {
    callers_.fetch_add(1);
    drive(done, limit, policy);
    const bool last = callers_.fetch_sub(1) == 1;
    last ? hand_over() : group_.me().bell.ring();
  }
  // [/caller]

  // [hand-over]
  bool needs_driver() const { return pending_ > 0 && callers_ == 0 && drivers_ == 0; }

  void hand_over() {
    if (!needs_driver()) return;
    const std::lock_guard lock(mutex_);
    summon();
  }

  void drive_as_thread(std::unique_lock<std::mutex>& lock) {
    ++drivers_;
    urgent_ = false;
    lock.unlock();
    drive(
        [&] {
          return threads_.ending() || pending_ == 0 || callers_ > 0 ||
              callbacks_.are_due();
        },
        Clock::time_point::max(), policy_.at_most(kThreadYields));
    lock.lock();
    --drivers_;
    if (callers_ > 0) group_.me().bell.ring(); // one may have slept while this looked
  }
  // [/hand-over]

  // Lets a thread come, and at once if this one is in a callback that may wait for it.
  void summon() {
    urgent_ = urgent_ || Callbacks::current();
    if (threads_.wake()) return;
    threads_.start(
        mutex_, [self = shared_from_this()](auto& lock) { self->serve(lock); });
  }

  void serve(std::unique_lock<std::mutex>& lock) {
    while (!threads_.ending() || !callbacks_.empty()) attend(lock);
  }

  // Does what there is to do, or rests until there may be something.
  void attend(std::unique_lock<std::mutex>& lock) {
    const auto now = Clock::now();
    const auto call_at = callbacks_.due();
    auto drive_at = Clock::time_point::max();
    // A thread that has just begun a callback may come back soon, and drive.
    if (needs_driver()) drive_at = urgent_ ? now : callbacks_.began() + kStandBy;
    if (now >= call_at) return call_next(lock);
    if (now >= drive_at) return drive_as_thread(lock);
    threads_.rest(lock, std::min(call_at, drive_at));
  }

  // [callbacks]
  void call_next(std::unique_lock<std::mutex>& lock) {
    auto turn = callbacks_.begin_next();
    if (!callbacks_.empty() || needs_driver()) summon(); // if the callbacks take long
    lock.unlock();
    Callbacks::call(std::move(turn.operation));
    group_.me().bell.ring(); // somebody may wait for the future
    lock.lock();
    callbacks_.end(turn);
  }
  // [/callbacks]

  void call_without_threads() {
    std::unique_lock lock(mutex_);
    while (threads_.none() && !callbacks_.empty()) call_next(lock);
  }

  // [drive-loop]
  template <class Done>
  void drive(const Done& done, Clock::time_point limit, WaitingPolicy policy) {
    Patience patience(
        policy.spin, std::min<microseconds>(policy.yield_for, kCheckEvery));
    while (!done()) {
      if (look(/*check=*/false)) {
        if (Clock::now() >= limit) return;
        patience.renew();
      } else if (!patience.pause()) {
        const auto left = limit - Clock::now();
        if (left <= Clock::duration::zero()) return;
        Bell::Sleep sleep(group_.me().bell);
        if (!look(/*check=*/true) && !done()) {
          sleep.wait_for(std::chrono::duration_cast<microseconds>(
              std::min<Clock::duration>(left, kCheckEvery)));
        }
      }
    }
  }
  // [/drive-loop]

  // Advances what can advance; false if nothing could, or another thread does it.
  bool look(bool check) {
    if (driving_.test_and_set()) return false;
    take_submitted();
    // However short the waits are, others may be late. A look is shorter than the
    // clock.
    check = check || (++looks_ % 8 == 0 && Clock::now() >= next_check_);
    if (check) next_check_ = Clock::now() + kCheckEvery;
    const bool moved = lanes_.advance(check);
    if (moved) moves_.fetch_add(1);
    stop_driving();
    if (check) call_without_threads();
    return moved;
  }

  void take_submitted() {
    std::unique_lock lock(mutex_);
    const auto submitted = std::exchange(submitted_, {});
    lock.unlock();
    for (const auto& [operation, lane] : submitted) lanes_.add(operation, lane);
  }

  void count(const Operation& operation, int change) {
    const Kind kind = operation.call.note.kind;
    pending_.fetch_add(change);
    if (kind == Kind::send) sends_.fetch_add(change);
    if (!is_message(kind)) collectives_.fetch_add(change);
  }

  // Ends the operations that are complete, and lets other threads drive.
  void stop_driving() {
    const auto ended = lanes_.take_ended();
    if (ended.empty()) return driving_.clear();
    std::unique_lock lock(mutex_);
    for (const auto& operation : ended) {
      count(*operation, -1);
      if (operation->end()) let_call(operation);
    }
    lock.unlock();
    for (const auto& operation : ended) operation->call_at_end();
    driving_.clear();
    group_.me().bell.ring();
  }

  // Lets a thread call the callbacks of the operation: the one that drives, if one
  // does.
  void let_call(const OperationPtr& operation) {
    callbacks_.add(operation);
    drivers_ == 0 ? summon() : group_.me().bell.ring();
  }

  const Group group_;
  const uint64_t forks_ = fork_count();
  const WaitingPolicy policy_;

  std::atomic<int> pending_{0}; // operations that have not ended
  std::atomic<int> collectives_{0}, sends_{0}; // of these
  std::atomic<int> callers_{0}; // threads that wait for an operation, and so drive
  std::atomic<int> drivers_{0}; // own threads that drive
  std::atomic<uint64_t> moves_{0}; // the number of advances

  std::mutex mutex_; // guards these, and is never held for long
  std::vector<std::pair<OperationPtr, int>> submitted_;
  Callbacks callbacks_;
  std::optional<std::string> closed_;
  Threads threads_;
  bool urgent_ = false; // a callback may wait for what a thread is to do

  // The thread that sets this owns the members below. No thread blocks on it.
  std::atomic_flag driving_;
  uint64_t looks_ = 0;
  Clock::time_point next_check_;
  Lanes lanes_;
};

} // namespace shm_collectives
