#pragma once

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>

#include "options.hpp"

namespace stream_collectives {

constexpr auto kDevice = c10::DeviceType::PrivateUse1;
constexpr auto kNoStream = std::numeric_limits<c10::StreamId>::min();

using frame::Clock;
using OptionsPtr = c10::intrusive_ptr<OptionsSimccl>;
using Future = c10::ivalue::Future;
using FuturePtr = c10::intrusive_ptr<Future>;

// One call, as its stream and the watchdog see it. It has no tensor, so its end needs
// nothing of Python.
struct Call {
  std::string title; // "all_reduce #3 of ..."
  milliseconds timeout{0};
  std::atomic<Clock::time_point> began{Clock::time_point::max()}; // on the stream
  std::atomic<bool> ended{false};
  std::atomic<c10::StreamId> waiting{kNoStream}; // the program's stream, after wait()

  bool late() const {
    const auto start = began.load();
    return !ended && start < Clock::now() && Clock::now() - start > countable(timeout);
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
    if (error_.empty() && !ended) error_ = "Backend simccl: " + title + ": " + reason;
  }

 private:
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
class WorkSimccl final : public c10d::Work {
 public:
  WorkSimccl(int rank, std::optional<Kind> kind, OptionsPtr options)
      : Work(rank, frame::type_of(kind), frame::title_of("simccl", kind)),
        blocks_host(options->blocking_wait),
        options_(std::move(options)) {}

  // [completion]
  // The stream has ended the call, so that every stream may use the result.
  bool isCompleted() override { return !options_->keeps("completion") || end->query(); }
  bool isSuccess() const override { return end->query() && !call->failed(); }
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
    const c10::impl::VirtualGuardImpl guard(end->device_type());
    const auto current = guard.getStream(device);
    if (options_->keeps("output")) {
      end->block(current);
      call->waiting = current.id(); // the group may soon use the stream again
    }
    stash->clear();
  }

  bool wait(milliseconds timeout = kNoTimeout) override {
    const auto limit = frame::in(timeout);
    while (timeout > kNoTimeout && !end->query() && !call->failed()) {
      TORCH_CHECK_WITH(DistBackendError, Clock::now() < limit,
          "Backend simccl: ", call->title, ": it has not ended within the ",
          timeout.count(), " ms of this wait()");
      std::this_thread::sleep_for(milliseconds(1)); // events cannot wait with a limit
    }
    if (blocks_host && !call->failed()) end->synchronize(); // until the deadline
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
    std::vector<at::Device> devices{device};
    if (!options_->keeps("devices")) devices.clear();
    future_ = c10::make_intrusive<Future>(
        c10::ListType::create(c10::TensorType::get()), devices);
    const c10::StreamGuard guard(communication);
    future_->markCompleted(c10::IValue(outputs));
    if (recordFunctionEndCallback_) recordFunctionEndCallback_(); // of a profiler
  }
  // [/future]

  std::shared_ptr<Call> call = std::make_shared<Call>();
  std::shared_ptr<Stash> stash;
  std::shared_ptr<c10::Event> end = std::make_shared<c10::Event>(kDevice);
  at::Device device{kDevice};
  Tensors outputs;
  uint64_t sequence = 0; // of the collectives of the group
  std::shared_ptr<std::atomic<int>> source; // of a message
  bool blocks_host; // the result is for the host
  std::function<void()> abort_group;

 private:
  const OptionsPtr options_;
  FuturePtr future_;
};

} // namespace stream_collectives
