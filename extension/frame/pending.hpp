#pragma once

#include <exception>

#include "arguments.hpp"

namespace frame {

// So much later than now, and at most what the clock can count.
inline Clock::time_point in(milliseconds time) {
  return Clock::now() + std::min<milliseconds>(time, std::chrono::hours(24 * 36500));
}
constexpr auto kNever = Clock::time_point::max();

// One call from its submission to its end. Its memory stays for as long as a Work, the
// engine or the transport needs it.
struct Pending {
  using Callback = std::function<void()>;

  explicit Pending(Arguments given)
      : arguments(std::make_shared<Arguments>(std::move(given))) {}

  const Note& note() const { return arguments->note; }
  bool ended() const { return ended_.load(); }
  // What went wrong; null if nothing did, or it goes on.
  std::exception_ptr error() const { return ended() ? error_ : nullptr; }

  // The mutex of the engine guards these:
  void end(std::exception_ptr error) {
    error_ = std::move(error);
    ended_.store(true);
  }
  Clock::time_point deadline = kNever; // of a collective that is the first
  std::vector<int> missing; // the ranks that it waited for when last looked at
  std::vector<Callback> callbacks, at_once; // on the thread of callbacks, or that ends it
  bool begun = false;

  const std::shared_ptr<Arguments> arguments; // the owner of the memory

  // Only the driving thread uses these:
  Operation operation;
  Steps steps;

 private:
  std::atomic<bool> ended_{false};
  std::exception_ptr error_;
};

using PendingPtr = std::shared_ptr<Pending>;

} // namespace frame
