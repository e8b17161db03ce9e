#pragma once

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "engine.hpp"

namespace frame {

using Operations = std::vector<PendingPtr>;

// For wait(): where a program has allowed works in flight as inputs of compiled graphs, c10d
// keeps every work until somebody waits for its tensors, or wait() takes it out.
inline void unregister(c10d::Work& work) {
  if (!c10d::allow_inflight_collective_as_graph_input()) return;
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;
  c10d::unregister_work(WorkPtr::unsafe_reclaim_from_nonowning(&work));
}

using FuturePtr = c10::intrusive_ptr<c10::ivalue::Future>;

// The future of a work that has ended.
inline FuturePtr ended_future(Tensors outputs) {
  const auto future = c10::make_intrusive<c10::ivalue::Future>(
      c10::ListType::create(c10::TensorType::get()));
  future->markCompleted(c10::IValue(std::move(outputs)));
  return future;
}

// The result of an asynchronous call: one operation, or several that were called
// together. It can outlive its group.
class Work : public c10d::Work {
  using Callback = std::function<void(std::exception_ptr)>;

 public:
  // [profiler]
  Work(int rank, c10d::OpType type, const char* profiling_title,
      std::shared_ptr<Engine> engine, Operations operations, Tensors outputs)
      : c10d::Work(rank, type, profiling_title, outputs),
        engine_(std::move(engine)),
        operations_(std::move(operations)),
        outputs_(std::move(outputs)) {
    if (!recordFunctionEndCallback_) return; // no profiler is running
    const auto end = last_time(recordFunctionEndCallback_);
    for (const auto& one : operations_) engine_->before_end(one, end);
  }
  // [/profiler]

  // All operations have ended, and so has the future, if the program has asked for one. In
  // a callback, only the operations count: the thread that calls back completes futures, so
  // one that waits there for the future of this work would wait for itself. The engine
  // asks with its mutex held, so nothing calls the engine while it holds mutex_.
  bool isCompleted() override {
    const auto ended = [](const auto& operation) { return operation->ended(); };
    if (!std::ranges::all_of(operations_, ended)) return false;
    const std::lock_guard lock(mutex_);
    return Engine::calls_back() || !future_ || future_->completed();
  }
  bool isSuccess() const override {
    return std::ranges::all_of(
        operations_, [](const auto& one) { return one->ended() && !one->error(); });
  }
  std::exception_ptr exception() const override { return first_error(operations_); }
  Tensors result() override { return outputs_; }

  int sourceRank() const override {
    const auto& one = operations_.empty() ? nullptr : operations_[0]->arguments->source;
    return one ? one->load() : c10d::Work::sourceRank();
  }
  uint64_t getSequencenumber() const override {
    return operations_.empty() ? 0 : operations_[0]->note().sequence;
  }
  milliseconds getTimeout() const { // virtual from PyTorch 2.14 on
    return operations_.empty() ? kNoTimeout : operations_[0]->arguments->timeout;
  }

  // [timeout-of-wait]
  // Throws if the work has failed or the timeout is over. After a timeout, the work goes
  // on and can be waited for again. 0 means no timeout but the work's: that of a
  // collective began with its first step, that of a message begins here.
  bool wait(milliseconds timeout = kNoTimeout) override {
    if (timeout <= kNoTimeout && has_message()) timeout = getTimeout();
    const auto limit = timeout > kNoTimeout ? in(timeout) : kNever;
    if (!isCompleted() && !engine_->wait([this] { return isCompleted(); }, limit)) {
      throw_late(timeout);
    }
    unregister(*this);
    if (const auto error = exception()) std::rethrow_exception(error);
    return true;
  }
  // [/timeout-of-wait]

  // Ends the work, and so everything else in its group, on all ranks.
  void abort() override { engine_->abort(); }

  // [one-future]
  // DDP takes its gradients from the value: the list of the outputs.
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    if (!isCompleted()) engine_->check_process();
    std::unique_lock lock(mutex_);
    if (future_) return future_;
    const auto future = future_ = c10::make_intrusive<c10::ivalue::Future>(
        c10::ListType::create(c10::TensorType::get()));
    lock.unlock();
    when_ended([future, outputs = outputs_](auto error) {
      error ? future->setError(error) : future->markCompleted(c10::IValue(outputs));
    });
    return future;
  }
  // [/one-future]

 private:
  bool has_message() const {
    return std::ranges::any_of(
        operations_, [](const auto& one) { return is_message(one->note().kind); });
  }

  void throw_late(milliseconds timeout) const {
    const auto late = std::ranges::find_if(
        operations_, [](const auto& one) { return !one->ended(); });
    const bool none = late == operations_.end(); // only the future is late
    const auto& one = none ? operations_.front() : *late;
    const auto& names = engine_->names();
    TORCH_CHECK_WITH(DistBackendError, false, "Backend ", names.backend, ": ",
        describe(one->note()), " of group \"", names.group,
        "\" has not ended within the ", timeout.count(),
        " ms of this wait(); it waits for ",
        none ? "earlier callbacks" : names.who(one->missing()) + one->because());
  }

  void when_ended(const Callback& callback) {
    const auto last = last_time(
        [callback, operations = operations_] { callback(first_error(operations)); });
    for (const auto& operation : operations_) engine_->when_ended(operation, last);
  }

  // Each operation calls this; the last one calls back. It owns no operation: a profiler's
  // callback is there before the operation begins, which may be refused.
  std::function<void()> last_time(const std::function<void()>& callback) const {
    auto left = std::make_shared<std::atomic<size_t>>(operations_.size());
    return [callback, left] {
      if (left->fetch_sub(1) == 1) callback();
    };
  }

  static std::exception_ptr first_error(const Operations& operations) {
    for (const auto& operation : operations) {
      if (operation->error()) return operation->error();
    }
    return nullptr;
  }

  const std::shared_ptr<Engine> engine_;
  const Operations operations_;
  const Tensors outputs_;
  // Without an operation that completes it, and wakes those who wait, it is never open.
  FuturePtr future_ = operations_.empty() ? ended_future(outputs_) : nullptr;
};

// The result of an asynchronous call whose operation had ended before it returned. It
// is made in less time than a Work, which counts for short messages.
class EndedWork final : public c10d::Work {
 public:
  EndedWork(int rank, c10d::OpType type, std::shared_ptr<Engine> engine,
      const Arguments& call)
      : c10d::Work(rank, type),
        engine_(std::move(engine)),
        sequence_(call.note.sequence),
        source_(call.source ? call.source->load() : -1),
        timeout_(call.timeout),
        outputs_(call.results) {}

  bool isCompleted() override { return true; }
  bool isSuccess() const override { return true; }
  std::exception_ptr exception() const override { return nullptr; }
  bool wait(milliseconds /* timeout */) override {
    unregister(*this);
    return true;
  }
  Tensors result() override { return {outputs_.begin(), outputs_.end()}; }
  int sourceRank() const override {
    return source_ < 0 ? c10d::Work::sourceRank() : source_;
  }
  uint64_t getSequencenumber() const override { return sequence_; }
  milliseconds getTimeout() const { return timeout_; } // virtual from PyTorch 2.14 on
  void abort() override { engine_->abort(); }

  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    const std::lock_guard lock(mutex_);
    if (!future_) future_ = ended_future(result());
    return future_;
  }

 private:
  const std::shared_ptr<Engine> engine_;
  const uint64_t sequence_;
  const int source_; // of a receive
  const milliseconds timeout_;
  const c10::SmallVector<at::Tensor, 2> outputs_;
  FuturePtr future_;
};

} // namespace frame
