#pragma once

#include <list>

#include "pending.hpp"

namespace frame {

constexpr milliseconds kCheckEvery{50}; // the state of the other ranks

// The operations that have begun, as the steps of their transport. Only the thread that
// has the turn uses it, and it alone calls these methods of the transport.
class Running {
 public:
  explicit Running(Transport& transport)
      : transport_(transport),
        check_every_(std::max(kCheckEvery, transport.size() * milliseconds(2))) {}

  // How often it looks for reasons: all ranks together at most 500 times in a second,
  // because they may ask one server.
  milliseconds check_every() const { return check_every_; }

  void add(const std::list<PendingPtr>& next) {
    begun_.insert(begun_.end(), next.begin(), next.end());
    has_new_ |= !next.empty();
  }
  bool empty() const { return begun_.empty(); }

  // Advances all that can advance, and calls ended() with each that has ended. Returns
  // whether any got on; throws why the group cannot go on. It looks only now and then
  // for reasons why the others never will: to ask memory for a failure is cheap; to ask
  // the kernel who lives is not.
  template <class Ended>
  bool advance(Clock::time_point now, bool check, const Ended& ended) {
    const bool has_new = std::exchange(has_new_, false);
    check |= now >= next_check_ || (has_new && transport_.can_block());
    if (check) next_check_ = now + check_every_;
    if (check || has_new) {
      if (const auto reason = transport_.failure()) throw std::runtime_error(*reason);
    }
    bool moved = false;
    transport_.progress();
    for (const auto& each : begun_) {
      moved |= each->ended() || advance_one(each, check);
      if (!each->ended() && each->steps.done()) {
        each->arguments->finish();
        ended(each);
      }
    }
    return moved;
  }

  // Lets go of those that have ended: a Work may keep the rest of them.
  void drop_ended() {
    std::erase_if(begun_, [](const auto& each) {
      if (each->ended()) each->steps = Steps();
      return each->ended();
    });
  }

  // The last steps of the transport, until they end, or the limit. Those of operations go
  // before, also of one that another thread is just ending.
  void say_goodbye(bool orderly, Clock::time_point limit) {
    for (const auto& each : begun_) each->steps = Steps();
    begun_.clear();
    Steps steps = transport_.leave(orderly);
    const auto advance = [&] {
      quietly([&] { transport_.progress(); });
      return steps.advance();
    };
    for (Idle idle{0, Clock::now()}; !steps.done() && Clock::now() < limit;
        ++idle.looks) {
      if (!advance()) transport_.rest(idle, limit, advance);
    }
  }

 private:
  // [advance]
  // Returns whether the operation got on.
  bool advance_one(const PendingPtr& pending, bool check) {
    if (!pending->operation.owner) {
      pending->operation = pending->arguments->operation(pending->arguments);
      pending->steps = begin(transport_, pending->operation);
    }
    const bool moved = pending->steps.advance();
    if (pending->steps.done()) return true;
    if (!check) return moved;
    const auto missing = pending->steps.missing();
    pending->wait_for(missing, pending->steps.because());
    const auto reason = transport_.lost(missing);
    // A rank may show its last data, or announce why it cannot go on, and then leave:
    // look for these once more.
    if (!reason) return moved;
    transport_.progress();
    if (pending->steps.advance()) return true;
    throw std::runtime_error(transport_.failure().value_or(*reason));
  }
  // [/advance]

  Transport& transport_;
  const milliseconds check_every_;
  std::vector<PendingPtr> begun_;
  bool has_new_ = false; // whose steps have not
  Clock::time_point next_check_;
};

} // namespace frame
