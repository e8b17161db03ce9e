#pragma once

#include <mutex>

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "transport.hpp"

namespace frame {

struct Options;
using OptionsPtr = c10::intrusive_ptr<Options>;

// The options of a backend, and with them its identity: its name, and how a rank makes
// its transport. OptionsOf defines what is the same for all.
struct Options : c10d::Backend::Options {
  using c10d::Backend::Options::Options;

  // Called on every rank when all have come; may throw.
  virtual std::unique_ptr<Transport> connect(Place place) const = 0;
  virtual OptionsPtr copy() const = 0;
  // A thread may set the timeout of a group while another one splits the group, which copies
  // the options.
  void set_timeout(milliseconds given) {
    const std::lock_guard lock(mutex_);
    timeout = given;
  }
  virtual c10::intrusive_ptr<c10d::Backend> start(
      const c10::intrusive_ptr<c10d::Store>&, int rank, int size,
      OptionsPtr options) const = 0;

 protected:
  static inline std::mutex mutex_; // of all options: objects with a mutex have no copy
};

// [timeouts]
// The timeout of a call: its own, if it has one. Otherwise PyTorch passes -1 or 0,
// depending on the caller.
inline milliseconds timeout_of_call(milliseconds own, milliseconds of_group) {
  return own > kNoTimeout ? own : of_group;
}

// The timeout in the options counts if the program has set it: init_process_group always
// passes its own beside them.
inline milliseconds timeout_of_group(milliseconds in_options, milliseconds passed) {
  return in_options == kBackendDefaultTimeout ? passed : in_options;
}
// [/timeouts]

// The timeout of a group, if it has a deadline. pybind11 counts a time in microseconds of
// 64 bits, so a longer one comes as any number.
inline milliseconds checked(milliseconds timeout, const std::string& backend) {
  TORCH_CHECK_VALUE(timeout > kNoTimeout, "Backend ", backend,
      ": the timeout of a group must be from 1 ms to 292,000 years, got ",
      timeout.count(), " ms");
  return timeout;
}

} // namespace frame
