#pragma once

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>

#include "options.hpp"

namespace stream_collectives {

using frame::Clock;
using Future = c10::ivalue::Future;
using FuturePtr = c10::intrusive_ptr<Future>;
using OptionsPtr = c10::intrusive_ptr<OptionsSimccl>;

// One call, as its stream and the watchdog see it. It has no tensor, so its end needs
// nothing of Python.
struct Call {
  std::string title; // "all_reduce #3 of ..."
  milliseconds timeout{0};
  std::atomic<Clock::time_point> began{Clock::time_point::max()}; // on the stream
  std::atomic<bool> ended{false};
  FuturePtr result = c10::make_intrusive<Future>(c10::IntType::get());

  bool begun() const { return began.load() < Clock::time_point::max(); }
  bool late() const {
    return !ended && begun() && Clock::now() - began.load() > timeout;
  }
  std::exception_ptr error() const {
    const std::lock_guard lock(mutex_);
    return error_;
  }
  void fail(const std::string& reason) { // the first reason counts
    const std::lock_guard lock(mutex_);
    if (error_ || ended) return;
    error_ = std::make_exception_ptr(c10::DistBackendError(
        {__func__, __FILE__, __LINE__}, "Backend simccl: " + title + ": " + reason));
  }

 private:
  mutable std::mutex mutex_;
  std::exception_ptr error_;
};

// The tensors of a call. Its Work and its group have them; the first that knows that
// nobody uses the memory lets go of it.
class Stash {
 public:
  void add(std::shared_ptr<const void> tensors) { kept_.push_back(std::move(tensors)); }
  void clear() {
    std::vector<std::shared_ptr<const void>> last; // ends without the mutex
    const std::lock_guard lock(mutex_);
    last.swap(kept_);
  }

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<const void>> kept_;
};

// What a call gives the program. It orders the streams of the program after that of the
// communication, and the host goes on.
struct Parts {
  OptionsPtr options;
  std::shared_ptr<Call> call;
  std::shared_ptr<Stash> stash;
  std::shared_ptr<c10::Event> end; // on the stream of the communication
  at::Device device;
  Tensors outputs;
  uint64_t sequence;
  std::shared_ptr<std::atomic<int>> source; // of a message
  bool blocks_host; // the result is for the host
  std::function<void()> abort;
};

class WorkSimccl final : public c10d::Work {
 public:
  WorkSimccl(int rank, std::optional<Kind> kind, Parts parts, const c10::Stream& stream)
      : Work(rank, frame::type_of(kind), frame::title_of("simccl", kind)),
        my_(std::move(parts)) {
    const c10::StreamGuard guard(stream);
    complete();
    if (recordFunctionEndCallback_) recordFunctionEndCallback_(); // of a profiler
  }

  // [completion]
  // The stream has ended the call, so that every stream may use the result.
  bool isCompleted() override {
    return !my_.options->keeps("completion") || my_.end->query();
  }
  bool isSuccess() const override { return my_.end->query() && !exception(); }
  std::exception_ptr exception() const override { return my_.call->error(); }
  // [/completion]
  Tensors result() override { return my_.outputs; }
  int sourceRank() const override {
    return my_.source ? my_.source->load() : c10d::Work::sourceRank();
  }
  uint64_t getSequencenumber() const override { return my_.sequence; }
  milliseconds getTimeout() const { return my_.call->timeout; } // virtual from 2.14 on
  void abort() override { my_.abort(); }

  // [wait]
  // What the current stream gets from now on comes after the communication. The memory
  // may go: if it belongs to that stream, its next owner writes to it after that, too.
  void synchronize() override {
    const c10::impl::VirtualGuardImpl device(my_.device.type());
    if (my_.options->keeps("output")) my_.end->block(device.getStream(my_.device));
    my_.stash->clear();
  }

  bool wait(milliseconds timeout = kNoTimeout) override {
    const auto limit = frame::in(timeout);
    while (timeout > kNoTimeout && !my_.end->query()) {
      TORCH_CHECK_WITH(DistBackendError, Clock::now() < limit,
          "Backend simccl: ", my_.call->title, ": it has not ended within the ",
          timeout.count(), " ms of this wait()");
      std::this_thread::sleep_for(milliseconds(1)); // events cannot wait with a limit
    }
    if (my_.blocks_host) my_.end->synchronize(); // the watchdog keeps the deadline
    synchronize();
    if (const auto error = exception()) std::rethrow_exception(error);
    return true;
  }
  // [/wait]

  FuturePtr getFuture() override { return future_; }
  FuturePtr getFutureResult() override { return my_.call->result; }

 private:
  // [future]
  // The future is complete at once, as NCCL's is, and records an event on the current
  // stream, which is that of the communication. The streams of callbacks, and of those
  // who wait, wait for that event.
  void complete() {
    std::vector<at::Device> devices{my_.device};
    if (!my_.options->keeps("devices")) devices.clear();
    future_ = c10::make_intrusive<Future>(
        c10::ListType::create(c10::TensorType::get()), devices);
    future_->markCompleted(c10::IValue(my_.outputs));
  }
  // [/future]

  const Parts my_;
  FuturePtr future_;
};

} // namespace stream_collectives
