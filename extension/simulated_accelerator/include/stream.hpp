#pragma once

#include <functional>
#include <string>

namespace sim {

// A stream, as a library for the device sees it: c10::impl::VirtualGuardImpl gives it as
// the native handle of a c10::Stream. CUDA's is cudaStream_t.
class Stream {
 public:
  using Task = std::function<void()>;

  // Runs a task after all that the stream got before; returns at once. The task owns
  // nothing whose end needs Python, because it ends on a thread of the device. If it throws,
  // the device fails from then on. The trace has its name. With `peers`, it waits for other
  // ranks.
  virtual void launch(std::string name, Task task, bool peers = false) = 0;

 protected:
  ~Stream() = default;
};

} // namespace sim
