#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "call.hpp"
#include "point_to_point.hpp"

namespace shm_collectives {

// [operation]
// One call, from its submission to its end.
class Operation {
 public:
  Operation(Call call, Steps steps) : call(std::move(call)), steps_(std::move(steps)) {}

  bool ended() const { return ended_.load(); }
  // What went wrong; null if nothing did.
  std::exception_ptr error() const { return ended() ? error_ : nullptr; }
  // Calls `callback` at the end, or at once if it has ended, without any lock: on
  // the thread that has brought the operation to its end, whichever that is.
  void when_ended(std::function<void()> callback);

  const Call call;

 private:
  friend class Progress;
  void end(std::exception_ptr error);
  std::vector<std::function<void()>> take_callbacks();

  Steps steps_;
  std::optional<Clock::time_point> deadline_;
  std::atomic<bool> ended_{false};
  std::exception_ptr error_;
  std::mutex mutex_;
  std::vector<std::function<void()>> callbacks_;
};
// [/operation]

struct WaitingPolicy {
  bool spin;
  microseconds yield_for;
};

// [progress]
// Runs the operations of one rank of a group. Whoever waits for an operation
// runs them all; while nobody waits, a thread does, which exists from the first
// time that it is needed. For what a callback starts on it, there is another one.
class Progress : public std::enable_shared_from_this<Progress> {
 public:
  Progress(Group group, WaitingPolicy policy);

  const Group& group() const { return group_; }
  Channel& channel() { return channel_; }
  Mailbox& mailbox() { return mailbox_; }

  // The operations of one lane run one after another. Receives have no order:
  // each ends when its message has come.
  static constexpr int kReceives = -1;
  static constexpr int kCollectives = 0;
  static int sends_to(int rank) { return 1 + rank; }

  void submit(std::shared_ptr<Operation> operation, int lane);
  // Returns at the end of the operation, or at the limit.
  void wait(const Operation& operation, Clock::time_point limit);
  // Leaves the operation to the thread, unless it ends in less time than it
  // takes to wake the thread. A large operation does not.
  void leave(const Operation& operation, bool large);
  // Waits for the end of everything that was submitted.
  void drain();
  // Ends everything that was submitted, and the thread. Call it before the last
  // owner goes.
  void close(const std::string& reason);
  // The same, on all ranks.
  void abort();

 private:
  using Shared = std::shared_ptr<Operation>;

  template <class Done>
  void drive(const Done& done, Clock::time_point limit, WaitingPolicy policy,
      std::atomic<int>& drivers);
  template <class Done>
  void call(const Done& done, Clock::time_point limit, WaitingPolicy policy);
  void hand_over();
  void serve();

  bool look(bool check, std::atomic<int>& drivers);
  bool deliver();
  void take_submitted();
  bool advance(const Shared& operation, bool check);
  std::optional<std::string> trouble(const Operation& operation) const;
  void fail(const Shared& operation, const std::string& problem);
  void end(const Shared& operation, std::exception_ptr error);
  std::exception_ptr error_of(const Note& note, const std::string& problem) const;
  void check_process() const;

  const Group group_;
  const uint64_t forks_ = fork_count();
  const WaitingPolicy policy_;
  Channel channel_;
  Mailbox mailbox_;

  std::atomic<int> pending_{0}; // operations that have not ended
  // Who drives, callbacks aside: threads that wait for an operation, own threads.
  std::atomic<int> callers_{0};
  std::atomic<int> drivers_{0};
  std::atomic<bool> closing_{false};

  std::mutex mutex_; // guards these, and is never held for long
  std::vector<std::pair<Shared, int>> submitted_;
  std::optional<std::string> closed_;
  std::vector<std::thread> threads_;
  int resting_ = 0; // of these threads
  std::condition_variable wake_;

  // Whoever sets this owns what follows. Nobody ever blocks on it.
  std::atomic_flag driving_;
  std::vector<std::deque<Shared>> lanes_;
  std::list<Shared> receives_;
  std::vector<Shared> ended_; // whose callbacks are still to be called
  bool broken_ = false; // an operation has failed, and so will all others
};
// [/progress]

} // namespace shm_collectives
