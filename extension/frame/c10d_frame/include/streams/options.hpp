#pragma once

#include "communicator.hpp"

namespace streams {

// The time that clocks can count to.
inline milliseconds countable(milliseconds timeout) {
  return std::min(timeout, frame::kLongest);
}

// A library that gives up by itself does so after the watchdog, whose error says more.
inline milliseconds timeout_of_library(milliseconds timeout) {
  return countable(timeout) + std::chrono::seconds(1);
}

// What a group asks the options of its backend.
struct Options {
  virtual ~Options() = default;
  virtual std::string unique_id() const = 0; // rank 0 draws it for all
  virtual std::unique_ptr<Communicator> connect_library(const Start&) const = 0;

  bool blocking_wait = false; // wait() makes the host wait, too
};

} // namespace streams
