#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace frame {

class Turns;

// The right to call the transport, which one thread has at a time. It goes back with
// the object that holds it; an empty one holds nothing.
class Turn {
 public:
  Turn() = default;
  Turn(Turn&& other) noexcept : of_(std::exchange(other.of_, nullptr)) {}
  Turn& operator=(Turn&& other) noexcept {
    std::swap(of_, other.of_);
    return *this;
  }
  inline ~Turn();
  explicit operator bool() const { return of_ != nullptr; }

 private:
  friend class Turns;
  explicit Turn(Turns* of) : of_(of) {}
  Turns* of_ = nullptr;
};

// [states]
// Hands out the turn, and counts the collectives. Both are one word, which any thread
// may change at any time, so that a small collective takes no mutex:
//
//             at_once() begins
//     idle ----------------------> idle, turn taken
//      | ^ <----------------------        |
//      | |       and ends it              | cannot end it: submit() or run() goes on
//      | |                                v
//      | '------------------------ busy, turn taken
//      |   the last operation ends        | ^
//      |                     it goes back | | look() takes it
//      |  submit() or run()               v |
//      '-------------------------> busy
//
//     any of them ---------------> the same, and nothing runs at once any more
//              a failure, or the end
// [/states]
class Turns {
 public:
  explicit Turns(bool at_once) : state_(at_once ? 0 : kNotAtOnce) {}

  // The turn, if no thread has it.
  Turn take() { return Turn(state_.fetch_or(kTaken) & kTaken ? nullptr : this); }

  // The same, if nothing runs: for a collective, which gets its number, or a message.
  Turn take_if_idle(uint64_t* number) {
    uint64_t state = state_;
    if (state % kOneCollective != 0) return {};
    const uint64_t next = state + (number ? kOneCollective : 0);
    if (!state_.compare_exchange_strong(state, next | kTaken)) return {};
    if (number) *number = next / kOneCollective;
    return Turn(this);
  }

  // The mutex of Progress is held, so that operations get their numbers in their order.
  void set_busy(bool busy) { busy ? state_ |= kBusy : state_ &= ~kBusy; }
  bool is_busy() const { return state_ & kBusy; }
  uint64_t count_collective() { return (state_ += kOneCollective) / kOneCollective; }

  uint64_t collectives() const { return state_ / kOneCollective; }
  void forbid_at_once() { state_ |= kNotAtOnce; }

 private:
  friend class Turn;
  static constexpr uint64_t kTaken = 1, kBusy = 2, kNotAtOnce = 4, kOneCollective = 8;
  std::atomic<uint64_t> state_;
};

inline Turn::~Turn() {
  if (of_ != nullptr) of_->state_ &= ~Turns::kTaken;
}

} // namespace frame
