#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "work.hpp"

namespace shm_collectives {

using TensorLists = std::vector<Tensors>;
using WorkPtr = c10::intrusive_ptr<c10d::Work>;

// [backend]
// Collectives and messages between the ranks of one host, through memory that
// they share, for the tensors of its CPU.
class BackendShm : public c10d::Backend {
 public:
  struct Options : c10d::Backend::Options {
    explicit Options(milliseconds timeout = kBackendDefaultTimeout)
        : c10d::Backend::Options("shm", timeout) {}
    // Virtual from PyTorch 2.14 on, where the base class could not copy these:
    c10::intrusive_ptr<c10d::Backend::Options> clone() const;

    // Each rank has 4 slots of this size; larger tensors go in several steps.
    uint64_t slot_bytes = 256 << 10;
    // How long a waiting thread lets others run before it goes to sleep.
    microseconds yield_for{500};
  };

  // Returns when all ranks of the group have called it.
  BackendShm(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
      c10::intrusive_ptr<Options> options);
  ~BackendShm() override;

  const std::string getBackendName() const override { return "shm"; }
  c10::intrusive_ptr<c10d::Backend::Options> getBackendOptions() override { return options_; }
  void setTimeout(milliseconds timeout) override;
  uint64_t getSequenceNumberForGroup() override { return sequence_; }
  void setSequenceNumberForGroup() override {} // it starts at 0 on every rank
  bool supportsCoalescing() const override { return true; }
  bool supportsSplitting() const override { return true; }

  WorkPtr broadcast(Tensors&, const c10d::BroadcastOptions&) override;
  WorkPtr allreduce(Tensors&, const c10d::AllreduceOptions&) override;
  WorkPtr allreduce_coalesced(Tensors&, const c10d::AllreduceCoalescedOptions&) override;
  WorkPtr reduce(Tensors&, const c10d::ReduceOptions&) override;
  WorkPtr allgather(TensorLists&, Tensors&, const c10d::AllgatherOptions&) override;
  WorkPtr allgather_coalesced(TensorLists&, Tensors&, const c10d::AllgatherOptions&) override;
  WorkPtr _allgather_base(at::Tensor&, at::Tensor&, const c10d::AllgatherOptions&) override;
  WorkPtr allgather_into_tensor_coalesced(
      Tensors&, Tensors&, const c10d::AllgatherOptions&) override;
  WorkPtr gather(TensorLists&, Tensors&, const c10d::GatherOptions&) override;
  WorkPtr gather_into_tensor( // virtual from PyTorch 2.14 on
      at::Tensor&, at::Tensor&, const c10d::GatherOptions&);
  WorkPtr scatter(Tensors&, TensorLists&, const c10d::ScatterOptions&) override;
  WorkPtr reduce_scatter(Tensors&, TensorLists&, const c10d::ReduceScatterOptions&) override;
  WorkPtr _reduce_scatter_base(
      at::Tensor&, at::Tensor&, const c10d::ReduceScatterOptions&) override;
  WorkPtr reduce_scatter_tensor_coalesced(
      Tensors&, Tensors&, const c10d::ReduceScatterOptions&) override;
  WorkPtr alltoall(Tensors&, Tensors&, const c10d::AllToAllOptions&) override;
  WorkPtr alltoall_base(at::Tensor&, at::Tensor&, std::vector<int64_t>&, std::vector<int64_t>&,
      const c10d::AllToAllOptions&) override;
  WorkPtr barrier(const c10d::BarrierOptions&) override;
  void monitoredBarrier(const c10d::BarrierOptions&, bool wait_all) override;
  WorkPtr send(Tensors&, int to, int tag) override;
  WorkPtr recv(Tensors&, int from, int tag) override;
  WorkPtr recvAnysource(Tensors&, int tag) override;

  // The names of PyTorch 2.14 for the same. What it does in place of these works
  // once at a time in a thread, but a callback may call what is calling it.
  WorkPtr all_gather_single(
      at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& o) {
    return _allgather_base(output, input, o);
  }
  WorkPtr all_gather_single_coalesced(
      Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions& o) {
    return allgather_into_tensor_coalesced(outputs, inputs, o);
  }
  WorkPtr gather_single(at::Tensor& output, at::Tensor& input, const c10d::GatherOptions& o) {
    return gather_into_tensor(output, input, o);
  }
  WorkPtr reduce_scatter_single(
      at::Tensor& output, at::Tensor& input, const c10d::ReduceScatterOptions& o) {
    return _reduce_scatter_base(output, input, o);
  }
  WorkPtr reduce_scatter_single_coalesced(
      Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& o) {
    return reduce_scatter_tensor_coalesced(outputs, inputs, o);
  }
  WorkPtr all_to_all_single(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& out_rows,
      std::vector<int64_t>& in_rows, const c10d::AllToAllOptions& o) {
    return alltoall_base(output, input, out_rows, in_rows, o);
  }

  void startCoalescing() override;
  WorkPtr endCoalescing() override;

  // The group of some of these ranks; on the other ranks nothing.
  c10::intrusive_ptr<c10d::Backend> split(const c10::intrusive_ptr<c10d::Store>&,
      const std::vector<int>& ranks, const c10::intrusive_ptr<c10d::Backend::Options>&) override;
  // The group of all ranks that meet at the store.
  c10::intrusive_ptr<c10d::Backend> merge(const c10::intrusive_ptr<c10d::Store>&,
      const c10::intrusive_ptr<c10d::Backend::Options>&, const int& rank, const int& size) override;

  void shutdown() override;
  void abort() override;

  // For the end of the process: no thread may work for a group after that.
  static void close_all();

 private:
  // The way of every call: begin, check and keep its tensors, number its note,
  // make its steps of that, run them.
  Call begin(Kind kind, milliseconds timeout) const;
  Note number(Call& call, Bytes data = {}, int root = -1);
  // With `async`, returns the Work; otherwise waits and returns none.
  WorkPtr run(Call& call, Steps steps, bool async, int lane = Progress::kCollectives,
      std::shared_ptr<std::atomic<int>> source = nullptr);
  // The Work of as many calls as there are inputs, one for each.
  WorkPtr together(Kind kind, bool async, size_t outputs, size_t inputs,
      const std::function<void(size_t)>& call);

  Channel& channel() { return progress_->channel(); }
  Reduction reduction(Call& call, const at::Tensor& tensor, const c10d::ReduceOp& op) const;
  Steps reduce_to(Call& call, Tensors& tensors, const c10d::ReduceOp& op, int root);
  WorkPtr message(Call& call, Bytes data, int other, int tag);

  const c10::intrusive_ptr<Options> options_;
  std::atomic<milliseconds> timeout_;
  std::atomic<uint64_t> sequence_{0};
  std::shared_ptr<Progress> progress_;

  struct Coalesced {
    bool submit = true; // each call at once
    Operations operations;
    Tensors results;
  };
  std::optional<Coalesced> coalesced_; // set while calls are being coalesced
};
// [/backend]

} // namespace shm_collectives
