#pragma once

#include <condition_variable>
#include <thread>

#include <c10/util/thread_name.h>

#include "lanes.hpp"

namespace shm_collectives {

struct WaitingPolicy {
  bool spin;
  microseconds yield_for;
};

// Who runs the operations of one rank of a group. Whoever waits for an operation
// runs them all; while nobody waits, a thread does, which exists from the first
// time that it is needed. For what a callback starts on it, there is another one.
class Progress : public std::enable_shared_from_this<Progress> {
 public:
  Progress(Group group, WaitingPolicy policy)
      : group_(std::move(group)), policy_(policy), lanes_(group_) {}

  const Group& group() const { return group_; }
  Channel& channel() { return lanes_.channel(); }
  Mailbox& mailbox() { return lanes_.mailbox(); }

  void submit(OperationPtr operation, int lane) {
    check_process();
    const std::lock_guard lock(mutex_);
    TORCH_CHECK_WITH(DistBackendError, !closed_, "Backend shm cannot run ",
        describe(operation->call.note), ": ", closed_.value_or(""));
    pending_.fetch_add(1);
    submitted_.emplace_back(std::move(operation), lane);
  }

  // Returns at the end of the operation, or at the limit.
  void wait(const Operation& operation, Clock::time_point limit) {
    check_process();
    call([&] { return operation.ended(); }, limit, policy_);
  }

  // Leaves the operation to the thread, unless it ends in less time than it
  // takes to wake the thread. A large operation does not.
  void leave(const Operation& operation, bool large) {
    if (!large) {
      return call([&] { return operation.ended(); }, Clock::now() + kBrief, {policy_.spin, kBrief});
    }
    hand_over();
    group_.me().bell.ring(); // whoever waits for a message can run this
  }

  // Waits for the end of everything that was submitted.
  void drain() {
    if (forks_ != fork_count()) return; // what was submitted belongs to the parent
    call([&] { return pending_ == 0; }, Clock::time_point::max(), policy_);
  }

  // Ends everything that was submitted, and the thread. Call it before the last
  // owner goes.
  void close(const std::string& reason) {
    if (forks_ != fork_count()) {
      new auto(shared_from_this()); // a fork has no thread that could be joined
      return;
    }
    std::vector<std::thread> threads;
    {
      const std::lock_guard lock(mutex_);
      if (!closed_) closed_ = reason;
      closing_ = true;
      threads.swap(threads_);
      wake_.notify_all();
    }
    while (driving_.test_and_set()) std::this_thread::yield();
    take_submitted();
    lanes_.close(*closed_);
    for (const auto& operation : stop_driving()) call_all(operation->take_callbacks());
    for (auto& thread : threads) { // a callback, which runs on one, may be what closes the group
      thread.get_id() == std::this_thread::get_id() ? thread.detach() : thread.join();
    }
    group_.me().left.store(true);
    group_.ring_others();
    group_.me().bell.ring();
  }

  // The same, on all ranks.
  void abort() {
    if (forks_ == fork_count()) group_.fail(group_.who(group_.rank()) + " has aborted the group");
    close("its group was aborted");
  }

 private:
  static constexpr milliseconds kCheckEvery{50}; // sleepers look after the others
  static constexpr microseconds kBrief{40}; // about what it costs to hand over to the thread
  static constexpr microseconds kThreadYields{50}; // the caller may need the processor

  void check_process() const {
    TORCH_CHECK_WITH(DistBackendError, forks_ == fork_count(), "Backend shm: group \"",
        group_.name(), "\" belongs to the process that created it, not to a fork of it; call "
        "init_process_group in the new process");
  }

  // [caller]
  // Drives for as long as the caller waits, and leaves what remains to others.
  template <class Done>
  void call(const Done& done, Clock::time_point limit, WaitingPolicy policy) {
    callers_.fetch_add(1);
    drive(done, limit, policy, callers_);
    const bool last = callers_.fetch_sub(1) == 1;
    if (last || in_callback_) hand_over();
    if (!last) group_.me().bell.ring();
  }
  // [/caller]

  // [hand-over]
  void hand_over() {
    if (pending_ > 0 && (callers_ == 0 || in_callback_)) {
      const std::lock_guard lock(mutex_);
      if (!closed_ && (threads_.empty() || (in_callback_ && resting_ == 0 && drivers_ == 0))) {
        threads_.emplace_back([self = shared_from_this()] { self->serve(); });
        ++resting_;
      }
      wake_.notify_one();
    }
  }

  void serve() {
    c10::setThreadName("shm_progress");
    const auto idle = [this] { return pending_ == 0 || callers_ > 0; };
    std::unique_lock lock(mutex_);
    while (!closing_) {
      wake_.wait(lock, [&] { return closing_ || (!idle() && drivers_ == 0); });
      --resting_;
      ++drivers_;
      lock.unlock();
      drive([&] { return closing_ || idle() || drivers_ > 1; }, Clock::time_point::max(),
          {policy_.spin, kThreadYields}, drivers_);
      lock.lock();
      --drivers_;
      ++resting_;
    }
  }
  // [/hand-over]

  // [drive-loop]
  template <class Done>
  void drive(const Done& done, Clock::time_point limit, WaitingPolicy policy,
      std::atomic<int>& drivers) {
    Patience patience(policy.spin, policy.yield_for);
    while (!done()) {
      if (look(/*check=*/false, drivers)) {
        if (Clock::now() >= limit) return;
        patience.renew();
      } else if (!patience.pause()) {
        const auto left = limit - Clock::now();
        if (left <= Clock::duration::zero()) return;
        Bell::Sleep sleep(group_.me().bell);
        if (!look(/*check=*/true, drivers) && !done()) {
          sleep.wait_for(std::chrono::duration_cast<microseconds>(
              std::min<Clock::duration>(left, kCheckEvery)));
        }
      }
    }
  }
  // [/drive-loop]

  // Advances what can advance; false if nothing could, or another thread does it.
  bool look(bool check, std::atomic<int>& drivers) {
    if (driving_.test_and_set()) return false;
    take_submitted();
    const bool moved = lanes_.advance(check);
    // [callbacks]
    for (const auto& operation : stop_driving()) {
      const auto callbacks = operation->take_callbacks();
      if (callbacks.empty()) continue;
      drivers.fetch_sub(1); // they may wait for what they start: another thread must run that
      call_all(callbacks);
      drivers.fetch_add(1);
    }
    // [/callbacks]
    return moved;
  }

  void take_submitted() {
    const std::lock_guard lock(mutex_);
    for (auto& [operation, lane] : submitted_) lanes_.add(std::move(operation), lane);
    submitted_.clear();
  }

  // Lets other threads drive; returns the operations that have ended meanwhile.
  Operations stop_driving() {
    auto ended = lanes_.take_ended();
    pending_.fetch_sub(static_cast<int>(ended.size()));
    driving_.clear();
    if (!ended.empty()) group_.me().bell.ring(); // another thread may wait for one of them
    return ended;
  }

  static void call_all(const std::vector<std::function<void()>>& callbacks) {
    ++in_callback_;
    for (const auto& callback : callbacks) callback();
    --in_callback_;
  }

  const Group group_;
  const uint64_t forks_ = fork_count();
  const WaitingPolicy policy_;

  std::atomic<int> pending_{0}; // operations that have not ended
  // Who drives, callbacks aside: threads that wait for an operation, own threads.
  std::atomic<int> callers_{0};
  std::atomic<int> drivers_{0};
  std::atomic<bool> closing_{false};
  // Of whichever group: this thread may not drive for long.
  static inline thread_local int in_callback_ = 0;

  std::mutex mutex_; // guards these, and is never held for long
  std::vector<std::pair<OperationPtr, int>> submitted_;
  std::optional<std::string> closed_;
  std::vector<std::thread> threads_;
  int resting_ = 0; // of these threads
  std::condition_variable wake_;

  // Whoever sets this owns what follows. Nobody ever blocks on it.
  std::atomic_flag driving_;
  Lanes lanes_;
};

} // namespace shm_collectives
