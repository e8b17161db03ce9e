#pragma once

#include <torch/csrc/distributed/c10d/Work.hpp>

#include "progress.hpp"

namespace shm_collectives {

// The result of a call: one operation, or several that were called together. It can
// outlive its group.
class WorkShm : public c10d::Work {
  using Callback = std::function<void(std::exception_ptr)>;

 public:
  // [profiler]
  WorkShm(int rank, c10d::OpType op_type, const char* profiling_title,
      std::shared_ptr<Progress> progress, Operations operations, Tensors outputs,
      std::shared_ptr<std::atomic<int>> source = nullptr)
      : c10d::Work(rank, op_type, profiling_title, outputs),
        progress_(std::move(progress)),
        operations_(std::move(operations)),
        outputs_(std::move(outputs)),
        source_(std::move(source)) {
    if (recordFunctionEndCallback_) { // a profiler is running
      const auto end = last_time([end = recordFunctionEndCallback_](auto) { end(); });
      for (const auto& operation : operations_) operation->at_end(end);
    }
  }
  // [/profiler]

  // The future, if there is one, is complete then, and has its value.
  bool isCompleted() override {
    const auto ended = [](const auto& operation) { return operation->ended(); };
    if (!std::ranges::all_of(operations_, ended)) return false;
    const std::lock_guard lock(mutex_);
    return !future_ || future_->completed();
  }
  bool isSuccess() const override {
    return std::ranges::all_of(
        operations_, [](const auto& one) { return one->ended() && !one->error(); });
  }
  std::exception_ptr exception() const override { return first_error(operations_); }
  Tensors result() override { return outputs_; }
  int sourceRank() const override {
    return source_ ? source_->load() : c10d::Work::sourceRank();
  }
  uint64_t getSequencenumber() const override {
    return operations_.empty() ? 0 : operations_.front()->call.note.sequence;
  }
  milliseconds getTimeout() const { // virtual from PyTorch 2.14 on
    return operations_.empty() ? kNoTimeout : operations_.front()->call.timeout;
  }

  // [timeout-of-wait]
  // Throws if the work has failed or the timeout is over. After a timeout, the
  // work goes on and can be waited for again. 0 means no timeout but the work's:
  // that of a collective began with its first step, that of a message begins here.
  bool wait(milliseconds timeout = kNoTimeout) override {
    if (timeout <= kNoTimeout && has_message()) timeout = getTimeout();
    const auto limit = timeout > kNoTimeout ? in(timeout) : Clock::time_point::max();
    bool completed = isCompleted();
    if (!completed) progress_->wait([&] { return completed = isCompleted(); }, limit);
    if (!completed && !isCompleted()) {
      const auto open =
          std::ranges::find_if(operations_, [](auto& one) { return !one->ended(); });
      const auto& note =
          (open == operations_.end() ? operations_.back() : *open)->call.note;
      TORCH_CHECK_WITH(DistBackendError, false, "Backend shm: ", describe(note),
          " of group \"", progress_->group().name(), "\" has not ended within the ",
          timeout.count(), " ms of this wait()");
    }
    if (const auto error = exception()) std::rethrow_exception(error);
    return true;
  }
  // [/timeout-of-wait]

  // Ends the work, and so everything else in its group, on all ranks.
  void abort() override { progress_->abort(); }

  // [one-future]
  // Calls back once, when the last operation has ended.
  void when_ended(const Callback& callback) {
    const auto last = last_time(callback);
    for (const auto& operation : operations_) progress_->when_ended(operation, last);
    if (operations_.empty()) callback(nullptr);
  }

  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    if (!isCompleted()) progress_->check_process();
    const std::lock_guard lock(mutex_);
    if (!future_) {
      auto future = c10::make_intrusive<c10::ivalue::Future>(
          c10::ListType::create(c10::TensorType::get()));
      when_ended([future, outputs = outputs_](auto error) {
        error ? future->setError(error) : future->markCompleted(c10::IValue(outputs));
      });
      future_ = std::move(future);
    }
    return future_;
  }
  // [/one-future]

  c10::intrusive_ptr<c10::ivalue::Future> getFutureResult() override {
    auto future = c10::make_intrusive<c10::ivalue::Future>(c10::IntType::get());
    when_ended([future](auto error) {
      const auto result =
          error ? c10d::WorkResult::COMM_ERROR : c10d::WorkResult::SUCCESS;
      future->markCompleted(c10::IValue(static_cast<int64_t>(result)));
    });
    return future;
  }

 private:
  bool has_message() const {
    return std::ranges::any_of(
        operations_, [](const auto& one) { return is_message(one->call.note.kind); });
  }

  // Each operation calls this; the last one calls back.
  std::function<void()> last_time(const Callback& callback) const {
    auto left = std::make_shared<std::atomic<size_t>>(operations_.size());
    return [callback, left, operations = operations_] {
      if (left->fetch_sub(1) == 1) callback(first_error(operations));
    };
  }

  static std::exception_ptr first_error(const Operations& operations) {
    for (const auto& operation : operations) {
      if (operation->error()) return operation->error();
    }
    return nullptr;
  }

  const std::shared_ptr<Progress> progress_;
  const Operations operations_;
  const Tensors outputs_;
  const std::shared_ptr<std::atomic<int>> source_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

} // namespace shm_collectives
