#pragma once

#include <c10/core/ScalarType.h>
#include <c10/core/Stream.h>

#include "frame/registration.hpp"

namespace streams {

using frame::Kind, frame::milliseconds, frame::StorePtr, frame::Tensors, frame::WorkPtr;

constexpr int64_t kOfCollectives = -1; // the tag of messages that make up a collective

// [communicator]
// The library of one rank of a group, in the shape of NCCL. A call enqueues on a stream
// and returns; it throws if the library refuses it. The caller keeps the memory until the
// stream has ended the call. Calls come one at a time, except `async_error` and `abort`:
// these come from the watchdog's thread, or another one, at any time.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual bool can_reduce(at::ScalarType, frame::Op) const = 0;
  virtual void all_reduce(const void* from, void* to, size_t count, at::ScalarType,
      frame::Op, c10::Stream) = 0;
  virtual void reduce(const void* from, void* to, size_t count, at::ScalarType,
      frame::Op, int root, c10::Stream) = 0; // no `to`, but on the root
  virtual void reduce_scatter(const void* from, void* to, size_t count, at::ScalarType,
      frame::Op, c10::Stream) = 0; // `count` for each rank
  virtual void broadcast(
      const void* from, void* to, size_t bytes, int root, c10::Stream) = 0;
  virtual void all_gather(
      const void* from, void* to, size_t bytes, c10::Stream) = 0; // for each rank
  virtual void send(
      const void* from, size_t bytes, int peer, int64_t tag, c10::Stream) = 0;
  virtual void receive(void* to, size_t bytes, int peer, int64_t tag, c10::Stream) = 0;

  // The calls in between run as one. NCCL needs neither the name, for a profiler, nor the
  // timeout, for a library that gives up by itself.
  virtual void group_start(const char* name, milliseconds timeout) = 0;
  virtual void group_end() = 0;

  virtual std::string async_error() = 0; // why calls fail; empty: they do not
  virtual void abort() = 0; // ends all calls, also those that wait for other ranks
  virtual void destroy() = 0; // when all calls have ended

  // What NCCL lacks: tags, and a receive from any rank, which names the sender. Without
  // them, messages run in the stream of the collectives, in the order of the calls.
  using Source = std::shared_ptr<std::atomic<int>>;
  virtual bool has_tags() const { return false; }
  virtual void receive_any(void*, size_t, int64_t, const Source&, c10::Stream) {}

  // A sum of a byte that is there for it, unless the library has a barrier.
  virtual void barrier(void* byte, c10::Stream stream) {
    all_reduce(byte, byte, 1, at::kByte, frame::Op::sum, stream);
  }

  // The device of its tensors, if it has only one.
  virtual std::optional<at::Device> device() const { return std::nullopt; }
};
// [/communicator]

// [start]
// Where a rank starts its communicator, as ncclCommInitRankConfig gets it. All ranks have
// come, and rank 0 has drawn the id. It may throw, and take until the deadline.
struct Start {
  std::string id;
  int rank, size;
  frame::Clock::time_point deadline;
  StorePtr store; // for a library that connects through it
};
// [/start]

} // namespace streams
