#pragma once

#include <deque>

#include "operation.hpp"
#include "point_to_point.hpp"

namespace shm_collectives {

// The operations of one rank of a group that have not ended, and how they get
// on. Only one thread at a time may use this: see Progress.
class Lanes {
 public:
  explicit Lanes(const Group& group)
      : group_(group), channel_(group), mailbox_(group), lanes_(1 + group.size()) {}

  Channel& channel() { return channel_; }
  Mailbox& mailbox() { return mailbox_; }

  // The operations of one lane run one after another. Receives have no order:
  // each ends when its message has come.
  static constexpr int kReceives = -1;
  static constexpr int kCollectives = 0;
  static int sends_to(int rank) { return 1 + rank; }

  void add(OperationPtr operation, int lane) {
    if (lane != kReceives) {
      lanes_[lane].push_back(std::move(operation));
    } else if (advance(operation, /*check=*/false); !operation->done) {
      receives_.push_back(std::move(operation));
    }
  }

  // Advances what can advance; false if nothing could. With `check`, looks for
  // reasons why the others never will.
  bool advance(bool check) {
    bool moved = deliver();
    for (auto& lane : lanes_) {
      while (!lane.empty()) {
        moved |= advance(lane.front(), check);
        if (!lane.front()->done) break;
        lane.pop_front();
      }
    }
    if (!moved && !check && !broken_) return false; // no receive has ended
    std::erase_if(receives_, [&](const auto& receive) {
      moved |= advance(receive, check);
      return receive->done;
    });
    return moved;
  }

  // Ends all of them.
  void close(const std::string& reason) {
    broken_ = true;
    for (auto& lane : lanes_) {
      for (const auto& operation : std::exchange(lane, {})) fail(operation, reason);
    }
    for (const auto& receive : std::exchange(receives_, {})) fail(receive, reason);
  }

  // Those that have ended since the last call.
  Operations take_ended() { return std::exchange(ended_, {}); }

 private:
  bool deliver() {
    try {
      return !broken_ && mailbox_.deliver();
    } catch (const std::exception& error) { // no memory to keep a message in
      broken_ = true; // every operation fails with this reason
      group_.fail(
          group_.who(group_.rank()) + " cannot keep a message: " + error.what());
      return true;
    }
  }

  // True if the operation got on, or ended.
  bool advance(const OperationPtr& operation, bool check) {
    std::optional<std::string> problem;
    try {
      if (!operation->deadline) { // its first step
        // Of a message, only the wait for it has a limit: see WorkShm::wait.
        const bool message = is_message(operation->call.note.kind);
        operation->deadline =
            message ? Clock::time_point::max() : in(operation->call.timeout);
        broken_ = broken_ || group_.failure();
      }
      const bool moved = !broken_ && operation->steps.advance();
      // [data-first]
      if (!broken_ && operation->steps.done()) {
        operation->call.finish();
        end(operation, nullptr);
        return true;
      }
      // [/data-first]
      if (moved || !(check || broken_)) return moved;
      problem = trouble(*operation);
    } catch (const std::exception& error) {
      problem = error.what();
    }
    if (!problem) return false;
    broken_ = true;
    group_.fail(*problem);
    fail(operation, *problem);
    return true;
  }

  // [reasons]
  // Why the operation will never end by itself, or has waited too long.
  std::optional<std::string> trouble(const Operation& operation) const {
    if (auto failure = group_.failure()) return failure;
    const Until& until = operation.steps.until();
    if (auto lost = group_.lost(until)) {
      return *lost + " during " + describe(operation.call.note);
    }
    if (Clock::now() < *operation.deadline) return std::nullopt;
    // [/reasons]
    const auto late = group_.missing(until, operation.call.name_all);
    const auto time = std::to_string(operation.call.timeout.count()) + " ms";
    if (operation.call.note.kind == Kind::monitored_barrier) { // the words of gloo's
      return late + " failed to pass monitoredBarrier in " + time + "; Rank " +
          std::to_string(group_.rank()) + " timed out in monitoredBarrier";
    }
    return "Timed out after " + time + ": " + group_.who(group_.rank()) +
        " has waited in " + describe(operation.call.note) + " for " + late;
  }

  void fail(const OperationPtr& operation, const std::string& problem) {
    end(operation,
        std::make_exception_ptr(c10::DistBackendError({__func__, __FILE__, __LINE__},
            "Backend shm: " + describe(operation->call.note) + " of group \"" +
                group_.name() + "\" failed on " + group_.who(group_.rank()) + ": " +
                problem)));
  }

  void end(const OperationPtr& operation, std::exception_ptr problem) {
    operation->problem = std::move(problem);
    operation->done = true;
    ended_.push_back(operation);
  }

  const Group& group_;
  Channel channel_;
  Mailbox mailbox_;
  std::vector<std::deque<OperationPtr>> lanes_;
  std::list<OperationPtr> receives_;
  Operations ended_;
  bool broken_ = false; // an operation has failed, and so will all others
};

} // namespace shm_collectives
