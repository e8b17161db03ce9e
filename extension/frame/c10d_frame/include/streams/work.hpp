#pragma once

#include "calls.hpp"
#include "launch.hpp"

namespace streams {

using Future = c10::ivalue::Future;
using FuturePtr = c10::intrusive_ptr<Future>;

// [stash]
// The tensors of a call. Its Work and its group share them; the first that knows that
// nobody uses the memory lets go of it.
class Stash {
 public:
  explicit Stash(CallList calls) : calls_(std::move(calls)) {}
  void clear() {
    CallList last; // ends without the mutex: it may need Python's lock
    const std::lock_guard lock(mutex_);
    last.swap(calls_);
  }

 private:
  std::mutex mutex_;
  CallList calls_;
};
// [/stash]

// The way of a work to its group, which it may outlive: abort() holds up the end of that.
class AbortHandle {
 public:
  explicit AbortHandle(std::function<void()> abort) : abort_(std::move(abort)) {}
  void abort() {
    const frame::WithoutGil without_gil; // the thread that has the mutex may need it
    const std::lock_guard lock(mutex_);
    if (abort_) abort_();
  }
  void close() {
    const std::lock_guard lock(mutex_);
    abort_ = nullptr;
  }

 private:
  std::mutex mutex_;
  std::function<void()> abort_;
};

// What a call gives the program. It makes the program's streams wait for that of the
// communication, and the host goes on.
class Work : public c10d::Work {
 public:
  Work(int rank, std::optional<Kind> kind, const std::string& backend)
      : c10d::Work(rank, frame::type_of(kind), frame::title_of(backend, kind)) {}

  // [completion]
  // The stream has ended the call, so that every stream may use the result.
  bool isCompleted() override { return launch->ended(); }
  bool isSuccess() const override { return launch->ended() && !launch->failed(); }
  // [/completion]
  std::exception_ptr exception() const override {
    if (!launch->failed()) return nullptr;
    return std::make_exception_ptr(
        c10::DistBackendError({__func__, __FILE__, __LINE__}, launch->error()));
  }
  Tensors result() override { return outputs; }
  int sourceRank() const override { return source ? source->load() : -1; }
  uint64_t getSequencenumber() const override { return sequence; }
  milliseconds getTimeout() const { return launch->timeout; } // virtual from 2.14 on
  void abort() override { abort_handle->abort(); }
  void blockCurrentStream() override { synchronize(); } // Work's own is for CUDA

  // [wait]
  // What the current stream gets from now on comes after the communication. The memory
  // may go: if it belongs to that stream, its next owner writes to it after that, too.
  void synchronize() override {
    const auto current = device::Guard(device::kType).getStream(device);
    launch->end.block(current);
    launch->waiting = current.id(); // the group may soon use the stream again
    stash->clear();
  }

  bool wait(milliseconds timeout = kNoTimeout) override {
    const auto limit = frame::in(timeout);
    while (timeout > kNoTimeout && !launch->ended() && !launch->failed()) {
      TORCH_CHECK_WITH(DistBackendError, Clock::now() < limit, launch->title,
          ": it has not ended within the ", timeout.count(), " ms of this wait()");
      std::this_thread::sleep_for(milliseconds(1)); // events cannot wait with a limit
    }
    if (blocks_host && !launch->failed())
      launch->end.synchronize(); // until the deadline
    synchronize();
    frame::unregister(*this);
    if (const auto error = exception()) std::rethrow_exception(error);
    return true;
  }
  // [/wait]

  // [future]
  // The future is complete at once, as NCCL's is, and records an event on the stream that
  // is current, here that of the communication. The streams of callbacks, and of those who
  // wait, wait for that event.
  FuturePtr getFuture() override { return future_; }
  void complete(const c10::Stream& communication) {
    future_ = c10::make_intrusive<Future>(
        c10::ListType::create(c10::TensorType::get()), std::vector{device});
    const device::StreamGuard guard(communication);
    future_->markCompleted(c10::IValue(outputs));
    if (recordFunctionEndCallback_) recordFunctionEndCallback_(); // of a profiler
  }
  // [/future]

  LaunchPtr launch = std::make_shared<Launch>();
  std::shared_ptr<Stash> stash;
  at::Device device{device::kType};
  Tensors outputs;
  uint64_t sequence = 0; // of the collectives of the group
  std::shared_ptr<std::atomic<int>> source; // of a message
  bool blocks_host = false; // the result is for the host
  std::shared_ptr<AbortHandle> abort_handle;

 private:
  FuturePtr future_;
};

} // namespace streams
