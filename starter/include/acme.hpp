#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

namespace acme_collectives {

// The handle of one collective. `dist.all_reduce(..., async_op=True)` returns
// it in Python.
class WorkAcme : public c10d::Work {
 public:
  WorkAcme(c10d::OpType op_type, int rank, std::vector<at::Tensor> outputs);

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

// Each rank has one in each group.
class BackendAcme : public c10d::Backend {
 public:
  BackendAcme(int rank, int size);

  // The name that the errors of missing collectives contain.
  const std::string getBackendName() const override;

  // Declare each operation here that src/acme.cpp defines. c10d refuses any
  // other, with an error that names it. The signatures:
  // https://SITE/tutorial/every-operation.html

  // destroy_process_group() calls shutdown(). abort() does not wait.
  void shutdown() override;
  void abort() override;

 private:
  // Throws if the backend was shut down.
  void check_open(const char* operation) const;

  std::atomic<bool> closed_{false};
};

// The function that init_process_group("acme") calls in each rank.
c10::intrusive_ptr<c10d::Backend> create_backend(
    const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
    const std::chrono::milliseconds& timeout);

} // namespace acme_collectives
