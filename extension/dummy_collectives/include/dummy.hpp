#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

namespace dummy_collectives {

// [work]
// The handle of one collective. `dist.all_reduce(..., async_op=True)` returns
// it in Python.
class WorkDummy : public c10d::Work {
 public:
  WorkDummy(c10d::OpType op_type, int rank, std::vector<at::Tensor> outputs);

  // Whether the operation has finished, successfully or not.
  bool isCompleted() override;
  // Whether it has finished successfully.
  bool isSuccess() const override;
  // Blocks until it has finished; throws if it failed.
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
  // A future whose value is the list of tensors that the operation wrote.
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

 private:
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};
// [/work]

// [backend]
// A backend that implements all-reduce and all-gather without communication:
// it sets every output tensor to zero.
class BackendDummy : public c10d::Backend {
 public:
  BackendDummy(int rank, int size);

  // The name that the errors of missing collectives contain.
  const std::string getBackendName() const override;

  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors,
      const c10d::AllreduceOptions& opts = c10d::AllreduceOptions()) override;

  c10::intrusive_ptr<c10d::Work> allgather(
      std::vector<std::vector<at::Tensor>>& output_lists,
      std::vector<at::Tensor>& inputs,
      const c10d::AllgatherOptions& opts = c10d::AllgatherOptions()) override;

  // destroy_process_group() calls shutdown(). abort() does not wait.
  void shutdown() override;
  void abort() override;

 private:
  // Throws if the backend was shut down.
  void check_open(const char* operation) const;

  std::atomic<bool> closed_{false};
};
// [/backend]

// [create]
// The function that init_process_group("dummy") calls in each rank.
c10::intrusive_ptr<c10d::Backend> create_backend(
    const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
    const std::chrono::milliseconds& timeout);
// [/create]

} // namespace dummy_collectives
