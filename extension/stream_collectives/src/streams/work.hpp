#pragma once

#include "device.hpp"

#include "options.hpp"

namespace streams {

constexpr auto kNoStream = std::numeric_limits<c10::StreamId>::min();

using frame::Clock;
using Future = c10::ivalue::Future;
using FuturePtr = c10::intrusive_ptr<Future>;

// One call, as its stream and the watchdog see it. It has no tensor, so its end needs
// nothing of Python.
struct Call {
  std::string title; // "Backend acme: all_reduce #3 of ..."
  milliseconds timeout{0};
  device::Event begin{device::kType}, end{device::kType}; // the stream reaches them
  std::atomic<c10::StreamId> waiting{kNoStream}; // the program's stream, after wait()

  bool ended() const { return end.query(); }
  // Of the watchdog, whose first look at a call that has begun starts its clock.
  bool late() {
    if (ended() || !begin.query()) return false;
    if (!began_) began_ = Clock::now();
    return Clock::now() - *began_ > countable(timeout);
  }
  bool is_waited_for_by(c10::StreamId stream) const {
    return stream != kNoStream && stream == waiting;
  }
  // Why it failed, or nothing. A text, so that each thread has its own.
  std::string error() const {
    const std::lock_guard lock(mutex_);
    return error_;
  }
  bool failed() const { return !error().empty(); }
  void fail(const std::string& reason) { // the first reason counts
    const std::lock_guard lock(mutex_);
    if (error_.empty() && !ended()) error_ = title + ": " + reason;
  }

 private:
  std::optional<Clock::time_point> began_;
  mutable std::mutex mutex_;
  std::string error_;
};

// [stash]
// The tensors of a call. Its Work and its group share them; the first that knows that
// nobody uses the memory lets go of it.
class Stash {
 public:
  using Kept = std::vector<std::shared_ptr<frame::Arguments>>;
  explicit Stash(Kept kept) : kept_(std::move(kept)) {}
  void clear() {
    Kept last; // ends without the mutex: it may need Python's lock
    const std::lock_guard lock(mutex_);
    last.swap(kept_);
  }

 private:
  std::mutex mutex_;
  Kept kept_;
};
// [/stash]

// What a call gives the program. It makes the program's streams wait for that of the
// communication, and the host goes on.
class Work : public c10d::Work {
 public:
  Work(int rank, std::optional<Kind> kind, const std::string& backend)
      : c10d::Work(rank, frame::type_of(kind), frame::title_of(backend, kind)) {}

  // [completion]
  // The stream has ended the call, so that every stream may use the result.
  bool isCompleted() override { return call->ended(); }
  bool isSuccess() const override { return call->ended() && !call->failed(); }
  // [/completion]
  std::exception_ptr exception() const override {
    if (!call->failed()) return nullptr;
    return std::make_exception_ptr(
        c10::DistBackendError({__func__, __FILE__, __LINE__}, call->error()));
  }
  Tensors result() override { return outputs; }
  int sourceRank() const override { return source ? source->load() : -1; }
  uint64_t getSequencenumber() const override { return sequence; }
  milliseconds getTimeout() const { return call->timeout; } // virtual from 2.14 on
  void abort() override { abort_group(); }
  void blockCurrentStream() override { synchronize(); } // Work's own is for CUDA

  // [wait]
  // What the current stream gets from now on comes after the communication. The memory
  // may go: if it belongs to that stream, its next owner writes to it after that, too.
  void synchronize() override {
    order(device::Guard(device::kType).getStream(device));
    stash->clear();
  }

  bool wait(milliseconds timeout = kNoTimeout) override {
    const auto limit = frame::in(timeout);
    while (timeout > kNoTimeout && !call->ended() && !call->failed()) {
      TORCH_CHECK_WITH(DistBackendError, Clock::now() < limit, call->title,
          ": it has not ended within the ", timeout.count(), " ms of this wait()");
      std::this_thread::sleep_for(milliseconds(1)); // events cannot wait with a limit
    }
    if (blocks_host && !call->failed()) call->end.synchronize(); // until the deadline
    synchronize();
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
        c10::ListType::create(c10::TensorType::get()), devices());
    const device::StreamGuard guard(communication);
    future_->markCompleted(c10::IValue(outputs));
    if (recordFunctionEndCallback_) recordFunctionEndCallback_(); // of a profiler
  }
  // [/future]

  std::shared_ptr<Call> call = std::make_shared<Call>();
  std::shared_ptr<Stash> stash;
  at::Device device{device::kType};
  Tensors outputs;
  uint64_t sequence = 0; // of the collectives of the group
  std::shared_ptr<std::atomic<int>> source; // of a message
  bool blocks_host = false; // the result is for the host
  std::function<void()> abort_group;

 protected:
  // The steps of the rules, so that a test can leave one out.
  // [order]
  virtual void order(const c10::Stream& current) {
    call->end.block(current);
    call->waiting = current.id(); // the group may soon use the stream again
  }
  // [/order]
  virtual std::vector<at::Device> devices() const { return {device}; }

 private:
  FuturePtr future_;
};

} // namespace streams
