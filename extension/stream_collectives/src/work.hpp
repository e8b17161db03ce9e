#pragma once

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>

#include "options.hpp"

namespace stream_collectives {

using frame::Clock;
using Future = c10::ivalue::Future;
using FuturePtr = c10::intrusive_ptr<Future>;

// Why a group cannot go on. The first reason counts.
class Failure {
 public:
  void set(const std::string& reason) {
    const std::lock_guard lock(mutex_);
    if (!reason_) reason_ = reason;
  }
  std::optional<std::string> get() const {
    const std::lock_guard lock(mutex_);
    return reason_;
  }

 private:
  mutable std::mutex mutex_;
  std::optional<std::string> reason_;
};

// One call, as its stream and the watchdog see it. It knows no tensor, so its end needs
// nothing of Python.
struct Call {
  std::string title; // "all_reduce #3"
  milliseconds timeout;
  std::shared_ptr<Failure> failure;
  std::atomic<Clock::time_point> began{Clock::time_point::max()}; // on the stream
  std::atomic<bool> ended{false};
  bool from_any = false; // a message from any rank, which is
  std::atomic<int> source{-1};
  FuturePtr result = c10::make_intrusive<Future>(c10::IntType::get());

  bool is_late() const {
    const auto start = began.load(); // the longest timeout would overflow a clock
    return !ended && start < Clock::now() && Clock::now() - start > timeout;
  }
  std::exception_ptr error() const {
    const auto reason = failed_ ? failure->get() : std::nullopt;
    if (!reason) return nullptr;
    return std::make_exception_ptr(c10::DistBackendError(
        {__func__, __FILE__, __LINE__}, "Backend simccl: " + title + ": " + *reason));
  }
  void fail(const std::string& reason) {
    failure->set(reason);
    failed_ = true;
  }

 private:
  std::atomic<bool> failed_{false};
};

// The tensors of a call. Both its Work and its group hold them, and the first of them
// that knows that nobody uses the memory any more lets go of it.
class Stash {
 public:
  explicit Stash(Tensors tensors) : tensors_(std::move(tensors)) {}
  void clear() {
    Tensors tensors; // ends without the mutex: it may need Python's lock
    const std::lock_guard lock(mutex_);
    tensors.swap(tensors_);
  }

 private:
  std::mutex mutex_;
  Tensors tensors_;
};

// The result of a call on a stream. Work and future order streams; the host goes on.
class WorkSimccl final : public c10d::Work {
 public:
  WorkSimccl(int rank, c10d::OpType type, const char* title, OptionsPtr options,
      uint64_t sequence, bool blocks_host)
      : Work(rank, type, title),
        options_(std::move(options)),
        sequence_(sequence),
        blocks_host_(blocks_host || options_->blocking_wait) {}

  // [completion]
  // The stream has ended the call, so that any stream may use the result.
  bool isCompleted() override { return !options_->keeps("completion") || end->query(); }
  bool isSuccess() const override { return end->query() && !exception(); }
  std::exception_ptr exception() const override { return call->error(); }
  // [/completion]
  Tensors result() override { return outputs; }
  int sourceRank() const override { return call->source; }
  uint64_t getSequencenumber() const override { return sequence_; }
  milliseconds getTimeout() const { return call->timeout; } // virtual from 2.14 on

  // [wait]
  // What the current stream gets from now on comes after the communication. The memory
  // may go then: its stream, if that is the current one, writes to it after that.
  void synchronize() override {
    const c10::impl::VirtualGuardImpl device(end->device_type());
    const auto stream = device.getStream(this->device);
    if (options_->keeps("output")) end->block(stream);
    stash->clear();
  }

  bool wait(milliseconds timeout = kNoTimeout) override {
    if (timeout > kNoTimeout) {
      wait_on_host(timeout);
    } else if (blocks_host_) {
      end->synchronize(); // the watchdog keeps the deadline
    }
    synchronize();
    if (const auto error = exception()) std::rethrow_exception(error);
    return true;
  }
  // [/wait]

  void abort() override { abort_group(); }

  // [future]
  FuturePtr getFuture() override { return future; }
  FuturePtr getFutureResult() override { return call->result; }

  // The future is complete at once, as NCCL's is. It records an event on the stream that
  // is current, which here is that of the communication: who waits for the future, and
  // each callback's stream, waits for that event.
  void complete(const c10::Stream& communication) {
    const bool knows = options_->keeps("devices");
    future = c10::make_intrusive<Future>(c10::ListType::create(c10::TensorType::get()),
        knows ? std::vector{device} : std::vector<c10::Device>());
    const c10::StreamGuard guard(communication);
    future->markCompleted(c10::IValue(outputs));
    if (recordFunctionEndCallback_) recordFunctionEndCallback_(); // of a profiler
  }
  // [/future]

  std::shared_ptr<Call> call;
  std::shared_ptr<c10::Event> end;
  std::shared_ptr<Stash> stash;
  Tensors outputs;
  c10::Device device{c10::kCPU};
  FuturePtr future;
  std::function<void()> abort_group;

 private:
  void wait_on_host(milliseconds timeout) const {
    const auto limit = frame::in(timeout);
    while (!end->query()) {
      TORCH_CHECK_WITH(DistBackendError, Clock::now() < limit,
          "Backend simccl: ", call->title, " has not ended within the ",
          timeout.count(), " ms of this wait()");
      std::this_thread::sleep_for(milliseconds(1)); // events cannot wait with a limit
    }
  }

  const OptionsPtr options_;
  const uint64_t sequence_;
  const bool blocks_host_;
};

} // namespace stream_collectives
