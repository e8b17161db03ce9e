#pragma once

#include <torch/csrc/distributed/c10d/Work.hpp>

#include "progress.hpp"

namespace shm_collectives {

using Operations = std::vector<std::shared_ptr<Operation>>;

// [work]
// What a call returns: one operation, or several that were called together. It
// can outlive its group.
class WorkShm : public c10d::Work {
 public:
  WorkShm(int rank, c10d::OpType op_type, const char* profiling_title,
      std::shared_ptr<Progress> progress, Operations operations, std::vector<at::Tensor> outputs,
      std::shared_ptr<std::atomic<int>> source = nullptr);

  bool isCompleted() override;
  bool isSuccess() const override;
  std::exception_ptr exception() const override;
  int sourceRank() const override;
  std::vector<at::Tensor> result() override;
  // Throws if the work has failed or the timeout is over. After a timeout, the
  // work goes on and can be waited for again. 0 means no timeout but the work's.
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
  // Ends the work, and so everything else in its group, on all ranks.
  void abort() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFutureResult() override;
  uint64_t getSequencenumber() const override;
  std::chrono::milliseconds getTimeout() const; // virtual from PyTorch 2.14 on

  void when_ended(std::function<void(std::exception_ptr)> callback);

 private:
  const std::shared_ptr<Progress> progress_;
  const Operations operations_;
  const std::vector<at::Tensor> outputs_;
  const std::shared_ptr<std::atomic<int>> source_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};
// [/work]

} // namespace shm_collectives
