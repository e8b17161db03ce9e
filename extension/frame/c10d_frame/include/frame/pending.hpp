#pragma once

#include <exception>

#include <c10/util/Exception.h>

#include "arguments.hpp"

namespace frame {

constexpr milliseconds kLastMoments{2000}; // for sends and goodbyes, at the end

// The text of an error, without the stack of C++ calls that PyTorch's errors have.
inline std::string text_of(const std::exception_ptr& error) {
  std::string text;
  try {
    std::rethrow_exception(error);
  } catch (const c10::Error& of_pytorch) {
    text = of_pytorch.what_without_backtrace();
  } catch (const std::exception& other) {
    text = other.what();
  } catch (...) {
    text = "an exception of an unknown type";
  }
  return text.empty() ? "an exception without a text" : text;
}

// For what helps other ranks, who find out at their deadlines if it fails. If there is a
// warning, the error stands behind it.
template <class Function>
void quietly(const Function& function, const char* warning = nullptr) {
  try {
    function();
  } catch (...) {
    if (warning) TORCH_WARN(warning, text_of(std::current_exception()));
  }
}

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

  // The ranks that it waits for, as of the last look for reasons.
  void wait_for(std::vector<int> ranks, std::string because) {
    const std::lock_guard lock(missing_mutex_);
    missing_ = std::move(ranks);
    because_ = std::move(because);
  }
  std::vector<int> missing() const {
    const std::lock_guard lock(missing_mutex_);
    return missing_;
  }

  std::string because() const {
    const std::lock_guard lock(missing_mutex_);
    return because_;
  }

  // The words of its failures.
  std::string timed_out(const Names& names, int rank) const {
    const auto missing = this->missing();
    const bool one = !arguments->name_all && missing.size() > 1;
    const auto late = names.who(one ? std::vector{missing[0]} : missing);
    const auto time = std::to_string(arguments->timeout.count()) + " ms";
    if (note().kind == Kind::monitored_barrier) { // the words of gloo's
      return late + " failed to pass monitoredBarrier in " + time + "; Rank " +
          std::to_string(rank) + " timed out in monitoredBarrier";
    }
    return "Timed out after " + time + ": " + names.who(rank) + " has waited in " +
        describe(note()) + " for " + late;
  }
  std::exception_ptr error_of(
      const std::string& reason, const Names& names, int rank) const {
    const std::string text = "Backend " + names.backend + ": " + describe(note()) +
        " of group \"" + names.group + "\" failed on " + names.who(rank) + ": " +
        reason;
    const std::string reached = "Rank " + std::to_string(rank) +
        " successfully reached monitoredBarrier, but received errors while waiting for "
        "send/recv from rank 0: "; // gloo's words on all other ranks
    const bool after = note().kind == Kind::monitored_barrier && rank != 0;
    return std::make_exception_ptr(c10::DistBackendError(
        {__func__, __FILE__, __LINE__}, (after ? reached : "") + text));
  }

  // The mutex of Progress guards these:
  void end(std::exception_ptr error) {
    error_ = std::move(error);
    ended_.store(true);
  }
  Clock::time_point deadline = kNever; // of a collective that is the first
  // Of a profiler, before the end; of the thread that ends it; of that which calls back.
  std::vector<Callback> before_end, soon, later;

  const std::shared_ptr<Arguments> arguments; // the owner of the memory

  // Only the thread that has the turn uses these:
  Operation operation;
  Steps steps;

 private:
  std::atomic<bool> ended_{false};
  std::exception_ptr error_;
  mutable std::mutex missing_mutex_;
  std::vector<int> missing_;
  std::string because_;
};

using PendingPtr = std::shared_ptr<Pending>;

} // namespace frame
