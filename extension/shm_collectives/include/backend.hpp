#pragma once

#include "call_runner.hpp"
#include "collectives.hpp"

namespace shm_collectives {

using TensorLists = std::vector<Tensors>;
using BackendPtr = c10::intrusive_ptr<c10d::Backend>;
using OptionsBase = c10::intrusive_ptr<c10d::Backend::Options>;
using StorePtr = c10::intrusive_ptr<c10d::Store>;

// Collectives and messages between the ranks of one host, through memory that
// they share, for the tensors of its CPU. Here is every operation of
// c10d::Backend: which tensors it takes, and which steps.
class BackendShm : public CallRunner {
 public:
  using CallRunner::CallRunner;

  bool supportsSplitting() const override { return true; }

  // The group of some of these ranks; on the other ranks nothing.
  BackendPtr split(const StorePtr& store, const std::vector<int>& ranks,
      const OptionsBase& given) override {
    const auto mine = std::ranges::find(ranks, getRank());
    if (mine == ranks.end()) return nullptr;
    const auto own = copy_of(given);
    const auto& names = options().global_ranks_in_group; // none: the same numbers
    own->global_ranks_in_group.clear();
    for (const int rank : ranks) {
      own->global_ranks_in_group.push_back(names.empty() ? rank : names.at(rank));
    }
    const auto rank = static_cast<int>(mine - ranks.begin());
    return merge(store, own, rank, static_cast<int>(ranks.size()));
  }

  // The group of all ranks that meet at the store.
  BackendPtr merge(const StorePtr& store, const OptionsBase& given, const int& rank,
      const int& size) override {
    const WithoutGil without_gil;
    return c10::make_intrusive<BackendShm>(store, rank, size, copy_of(given));
  }

  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& opts) override {
    Call call = begin(Kind::all_reduce, opts.timeout);
    return run(call, reduce_to(call, tensors, opts.reduceOp, -1), opts.asyncOp);
  }

  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& opts) override {
    Call call = begin(Kind::reduce, opts.timeout);
    const int root = call.rank(opts.rootRank, "root");
    return run(call, reduce_to(call, tensors, opts.reduceOp, root), opts.asyncOp);
  }

  WorkPtr reduce_scatter(Tensors& outputs, TensorLists& input_lists,
      const c10d::ReduceScatterOptions& opts) override {
    Call call = begin(Kind::reduce_scatter, opts.timeout);
    const auto& output = call.single(outputs, "output tensor");
    const auto reduce = reduction(call, output, opts.reduceOp);
    const Bytes out = call.output(output);
    Tensors inputs = call.single(input_lists, "list of input tensors");
    for (auto& input : inputs) input = scaled(input, opts.reduceOp);
    const Pieces in = call.inputs(inputs);
    call.require(in[getRank()].size() == out.size(),
        " takes an output as large as the input of "
        "its rank, got ",
        out.size(), " and ", in[getRank()].size(), " bytes");
    const Note note = number(call, call.sizes(in));
    return run(
        call, steps::reduce_scatter(channel(), note, reduce, in, out), opts.asyncOp);
  }

  WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
      const c10d::ReduceScatterOptions& opts) override {
    Call call = begin(Kind::reduce_scatter, opts.timeout);
    const auto reduce = reduction(call, output, opts.reduceOp);
    const Bytes out = call.output(output);
    const Pieces in = call.pieces(call.input(scaled(input, opts.reduceOp)), out);
    const Note note = number(call, out);
    return run(
        call, steps::reduce_scatter(channel(), note, reduce, in, out), opts.asyncOp);
  }

  // [all-gathers]
  WorkPtr allgather(TensorLists& output_lists, Tensors& inputs,
      const c10d::AllgatherOptions& opts) override {
    Call call = begin(Kind::all_gather, opts.timeout);
    const Bytes in = call.input(call.single(inputs, "input tensor"));
    const Pieces out =
        call.outputs(call.single(output_lists, "list of output tensors"), &in);
    return run(call, steps::gather(channel(), number(call, in), in, out), opts.asyncOp);
  }

  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input,
      const c10d::AllgatherOptions& opts) override {
    Call call = begin(Kind::all_gather, opts.timeout);
    const Bytes in = call.input(input);
    const Pieces out = call.pieces(call.output(output), in);
    return run(call, steps::gather(channel(), number(call, in), in, out), opts.asyncOp);
  }
  // [/all-gathers]

  WorkPtr gather(TensorLists& output_lists, Tensors& inputs,
      const c10d::GatherOptions& opts) override {
    Call call = begin(Kind::gather, opts.timeout);
    const int root = call.rank(opts.rootRank, "root");
    const Bytes in = call.input(call.single(inputs, "input tensor"));
    call.require(
        root == getRank() || output_lists.empty(), " takes outputs on its root only");
    const Pieces out = root != getRank()
        ? Pieces()
        : call.outputs(call.single(output_lists, "list of output tensors"), &in);
    return run(
        call, steps::gather(channel(), number(call, in, root), in, out), opts.asyncOp);
  }

  WorkPtr gather_into_tensor( // virtual from PyTorch 2.14 on
      at::Tensor& output, at::Tensor& input, const c10d::GatherOptions& opts) {
    Call call = begin(Kind::gather, opts.timeout);
    const int root = call.rank(opts.rootRank, "root");
    const Bytes in = call.input(input);
    const Pieces out =
        root != getRank() ? Pieces() : call.pieces(call.output(output), in);
    return run(
        call, steps::gather(channel(), number(call, in, root), in, out), opts.asyncOp);
  }

  WorkPtr scatter(Tensors& outputs, TensorLists& input_lists,
      const c10d::ScatterOptions& opts) override {
    Call call = begin(Kind::scatter, opts.timeout);
    const int root = call.rank(opts.rootRank, "root");
    const Bytes out = call.output(call.single(outputs, "output tensor"));
    call.require(
        root == getRank() || input_lists.empty(), " takes inputs on its root only");
    const Pieces in = root != getRank()
        ? Pieces()
        : call.inputs(call.single(input_lists, "list of input tensors"), &out);
    return run(call, steps::scatter(channel(), number(call, out, root), in, out),
        opts.asyncOp);
  }

  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& opts) override {
    Call call = begin(Kind::broadcast, opts.timeout);
    const int root = call.rank(opts.rootRank, "root");
    const auto& tensor = call.single(tensors, "tensor");
    const Bytes data = root == getRank() ? call.input(tensor) : call.output(tensor);
    call.results = {tensor};
    return run(call, steps::broadcast(channel(), number(call, data, root), data),
        opts.asyncOp);
  }

  WorkPtr alltoall(
      Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& opts) override {
    Call call = begin(Kind::all_to_all, opts.timeout);
    const Pieces out = call.outputs(outputs), in = call.inputs(inputs);
    return run(call, steps::all_to_all(channel(), number(call), in, out), opts.asyncOp);
  }

  WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input,
      std::vector<int64_t>& output_rows, std::vector<int64_t>& input_rows,
      const c10d::AllToAllOptions& opts) override {
    Call call = begin(Kind::all_to_all, opts.timeout);
    const Pieces out = call.rows(output, call.output(output), output_rows);
    const Pieces in = call.rows(input, call.input(input), input_rows);
    return run(call, steps::all_to_all(channel(), number(call), in, out), opts.asyncOp);
  }

  WorkPtr barrier(const c10d::BarrierOptions& opts) override {
    Call call = begin(Kind::barrier, opts.timeout);
    return run(call, steps::barrier(channel(), number(call)), opts.asyncOp);
  }

  void monitoredBarrier(const c10d::BarrierOptions& opts, bool wait_all) override {
    // Callers always pass a timeout; 0 does not mean the default.
    Call call = begin(Kind::monitored_barrier, std::max(opts.timeout, milliseconds(1)));
    call.name_all = wait_all;
    try {
      run(call, steps::barrier(channel(), number(call)), /*async=*/false);
    } catch (const c10::DistBackendError& error) {
      const std::string reached = "Rank " + std::to_string(getRank()) +
          " successfully reached monitoredBarrier, but received errors while "
          "waiting for send/recv from rank 0: "; // as gloo says on all other ranks
      C10_THROW_ERROR(DistBackendError,
          (getRank() == 0 ? "" : reached) + error.what_without_backtrace());
    }
  }

  WorkPtr allreduce_coalesced(
      Tensors& tensors, const c10d::AllreduceCoalescedOptions& opts) override {
    return together(
        Kind::all_reduce, opts.asyncOp, tensors.size(), tensors.size(), [&](size_t i) {
          Tensors one{tensors[i]};
          allreduce(one, opts);
        });
  }

  WorkPtr reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
      const c10d::ReduceScatterOptions& opts) override {
    return together(Kind::reduce_scatter, opts.asyncOp, outputs.size(), inputs.size(),
        [&](size_t i) { _reduce_scatter_base(outputs[i], inputs[i], opts); });
  }

  WorkPtr allgather_into_tensor_coalesced(
      Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions& opts) override {
    return together(Kind::all_gather, opts.asyncOp, outputs.size(), inputs.size(),
        [&](size_t i) { _allgather_base(outputs[i], inputs[i], opts); });
  }

  WorkPtr allgather_coalesced(TensorLists& output_lists, Tensors& inputs,
      const c10d::AllgatherOptions& opts) override {
    size_t least = inputs.size();
    for (const auto& list : output_lists) least = std::min(least, list.size());
    return together(
        Kind::all_gather, opts.asyncOp, least, inputs.size(), [&](size_t i) {
          TensorLists outputs(1); // output_lists[rank][i] comes from that rank
          for (const auto& list : output_lists) outputs[0].push_back(list[i]);
          Tensors one{inputs[i]};
          allgather(outputs, one, opts);
        });
  }

  WorkPtr send(Tensors& tensors, int to, int tag) override {
    Call call = begin(Kind::send, kNoTimeout);
    const Bytes data = call.input(call.single(tensors, "tensor"));
    const Note note = address(call, data, call.rank(to, "destination"), tag);
    return run(
        call, mailbox().send(note, data, to), /*async=*/true, Lanes::sends_to(to));
  }

  WorkPtr recv(Tensors& tensors, int from, int tag) override {
    Call call = begin(Kind::receive, kNoTimeout);
    return receive(call, tensors, call.rank(from, "source"), tag);
  }

  WorkPtr recvAnysource(Tensors& tensors, int tag) override {
    Call call = begin(Kind::receive, kNoTimeout);
    return receive(call, tensors, kAnySource, tag);
  }

 private:
  static c10::intrusive_ptr<OptionsShm> copy_of(const OptionsBase& given) {
    const auto ours = c10::dynamic_intrusive_pointer_cast<OptionsShm>(given);
    TORCH_CHECK_VALUE(
        ours, "Backend shm takes options of the class shm_collectives.Options");
    return c10::make_intrusive<OptionsShm>(*ours);
  }

  Reduction reduction(
      Call& call, const at::Tensor& tensor, const c10d::ReduceOp& op) const {
    call.note.op = static_cast<Op>(op.op_);
    return {tensor.scalar_type(), call.note.op, getSize()};
  }

  // The steps of all_reduce, and of reduce, where only the root has an output.
  Steps reduce_to(Call& call, Tensors& tensors, const c10d::ReduceOp& op, int root) {
    const auto& tensor = call.single(tensors, "tensor");
    const auto reduce = reduction(call, tensor, op);
    if (root == -1 && tensor.is_sparse()) {
      auto of_all = std::make_shared<PackedTensors>(getSize());
      const Bytes input = call.sparse(tensor, of_all);
      const Note note = number(call, tensor.numel() * tensor.element_size());
      return steps::gather_packed(channel(), note, input, of_all);
    }
    Bytes input, output;
    if (root == -1 || root == getRank()) {
      input = output = call.output(tensor, /*in_place=*/true);
    }
    if (output.empty() || op.op_ == c10d::ReduceOp::PREMUL_SUM) {
      input = call.input(scaled(tensor, op));
    }
    call.results = {tensor};
    return steps::all_reduce(
        channel(), number(call, input, root), reduce, input, output);
  }

  // The note of a message.
  static Note address(Call& call, Bytes data, int other, int tag) {
    call.require(tag >= 0, ": tag ", tag, " is negative");
    call.note.bytes = data.size();
    call.note.tag = tag;
    call.note.root = other;
    return call.note;
  }

  WorkPtr receive(Call& call, Tensors& tensors, int from, int tag) {
    const Bytes data = call.output(call.single(tensors, "tensor"));
    const Note note = address(call, data, from, tag);
    auto source = std::make_shared<std::atomic<int>>(from);
    Steps steps = mailbox().receive(note, data, source);
    return run(call, std::move(steps), /*async=*/true, Lanes::kReceives, source);
  }
};

} // namespace shm_collectives
