#include "work.hpp"

#include <utility>

namespace shm_collectives {

namespace {

std::exception_ptr first_error(const Operations& operations) {
  for (const auto& operation : operations) {
    if (operation->error()) return operation->error();
  }
  return nullptr;
}

} // namespace

// [profiler]
WorkShm::WorkShm(int rank, c10d::OpType op_type, const char* profiling_title,
    std::shared_ptr<Progress> progress, Operations operations, std::vector<at::Tensor> outputs,
    std::shared_ptr<std::atomic<int>> source) : c10d::Work(rank, op_type, profiling_title, outputs),
    progress_(std::move(progress)), operations_(std::move(operations)),
    outputs_(std::move(outputs)), source_(std::move(source)) {
  if (recordFunctionEndCallback_) { // a profiler is running
    when_ended([end = recordFunctionEndCallback_](auto) { end(); });
  }
}
// [/profiler]

// [state]
bool WorkShm::isCompleted() {
  return std::ranges::all_of(operations_, [](const auto& operation) { return operation->ended(); });
}

bool WorkShm::isSuccess() const {
  return std::ranges::all_of(operations_, [](const auto& operation) {
    return operation->ended() && !operation->error();
  });
}

std::exception_ptr WorkShm::exception() const {
  return first_error(operations_);
}

int WorkShm::sourceRank() const {
  return source_ ? source_->load() : c10d::Work::sourceRank();
}

std::vector<at::Tensor> WorkShm::result() {
  return outputs_;
}

uint64_t WorkShm::getSequencenumber() const {
  return operations_.empty() ? 0 : operations_.front()->call.note.sequence;
}

std::chrono::milliseconds WorkShm::getTimeout() const {
  return operations_.empty() ? kNoTimeout : operations_.front()->call.timeout;
}
// [/state]

// [wait]
// [timeout-of-wait]
bool WorkShm::wait(std::chrono::milliseconds timeout) {
  const auto limit = timeout > kNoTimeout ? Clock::now() + timeout : Clock::time_point::max();
  for (const auto& operation : operations_) {
    if (!operation->ended()) progress_->wait(*operation, limit);
    TORCH_CHECK_WITH(DistBackendError, operation->ended(), "Backend shm: ",
        describe(operation->call.note), " of group \"", progress_->group().name(),
        "\" has not ended within the ", timeout.count(), " ms of this wait()");
  }
  if (const auto error = first_error(operations_)) std::rethrow_exception(error);
  return true;
}
// [/timeout-of-wait]

void WorkShm::abort() {
  progress_->abort();
}
// [/wait]

// [future]
// [one-future]
// Calls back once, when the last operation has ended.
void WorkShm::when_ended(std::function<void(std::exception_ptr)> callback) {
  auto left = std::make_shared<std::atomic<size_t>>(operations_.size());
  auto last = [callback, left, operations = operations_] {
    if (left->fetch_sub(1) == 1) callback(first_error(operations));
  };
  for (const auto& operation : operations_) operation->when_ended(last);
  if (operations_.empty()) callback(nullptr);
}

c10::intrusive_ptr<c10::ivalue::Future> WorkShm::getFuture() {
  const std::lock_guard lock(mutex_);
  if (!future_) {
    future_ = c10::make_intrusive<c10::ivalue::Future>(
        c10::ListType::create(c10::TensorType::get()));
    when_ended([future = future_, outputs = outputs_](auto error) {
      error ? future->setError(error) : future->markCompleted(c10::IValue(outputs));
    });
  }
  return future_;
}

// [/one-future]
c10::intrusive_ptr<c10::ivalue::Future> WorkShm::getFutureResult() {
  auto future = c10::make_intrusive<c10::ivalue::Future>(c10::IntType::get());
  when_ended([future](auto error) {
    const auto result = error ? c10d::WorkResult::COMM_ERROR : c10d::WorkResult::SUCCESS;
    future->markCompleted(c10::IValue(static_cast<int64_t>(result)));
  });
  return future;
}
// [/future]

} // namespace shm_collectives
