// Every operation of c10d::Backend: which tensors it takes, and which steps.

#include "backend.hpp"

namespace shm_collectives {

// [premul-sum]
// The input, or what PREMUL_SUM makes of it.
static at::Tensor scaled(const at::Tensor& input, const c10d::ReduceOp& op) {
  if (op.op_ != c10d::ReduceOp::PREMUL_SUM) return input;
  const auto& factor = dynamic_cast<const c10d::NCCLPreMulSumSupplement&>(*op.supplement_);
  const double number = factor.tensor_factor.defined() ? factor.tensor_factor.item<double>()
      : factor.double_factor;
  const auto dtype = input.scalar_type();
  return input.to(at::isReducedFloatingType(dtype) ? at::kFloat : dtype).mul(number).to(dtype);
}
// [/premul-sum]

// [reductions]
Reduction BackendShm::reduction(
    Call& call, const at::Tensor& tensor, const c10d::ReduceOp& op) const {
  call.note.op = static_cast<Op>(op.op_);
  return {tensor.scalar_type(), call.note.op, getSize()};
}

// The steps of all_reduce, and of reduce, where only the root has an output.
Steps BackendShm::reduce_to(Call& call, Tensors& tensors, const c10d::ReduceOp& op, int root) {
  const auto& tensor = call.single(tensors, "tensor");
  const auto reduce = reduction(call, tensor, op);
  Bytes input, output;
  if (root == -1 || root == getRank()) input = output = call.output(tensor, /*in_place=*/true);
  if (output.empty() || op.op_ == c10d::ReduceOp::PREMUL_SUM) input = call.input(scaled(tensor, op));
  call.results = {tensor};
  return steps::all_reduce(channel(), number(call, input, root), reduce, input, output);
}

WorkPtr BackendShm::allreduce(Tensors& tensors, const c10d::AllreduceOptions& opts) {
  Call call = begin(Kind::all_reduce, opts.timeout);
  return run(call, reduce_to(call, tensors, opts.reduceOp, -1), opts.asyncOp);
}

WorkPtr BackendShm::reduce(Tensors& tensors, const c10d::ReduceOptions& opts) {
  Call call = begin(Kind::reduce, opts.timeout);
  const int root = call.rank(opts.rootRank, "root");
  return run(call, reduce_to(call, tensors, opts.reduceOp, root), opts.asyncOp);
}

WorkPtr BackendShm::reduce_scatter(Tensors& outputs, TensorLists& input_lists,
    const c10d::ReduceScatterOptions& opts) {
  Call call = begin(Kind::reduce_scatter, opts.timeout);
  const auto& output = call.single(outputs, "output tensor");
  const auto reduce = reduction(call, output, opts.reduceOp);
  const Bytes out = call.output(output);
  Tensors inputs = call.single(input_lists, "list of input tensors");
  for (auto& input : inputs) input = scaled(input, opts.reduceOp);
  const Pieces in = call.inputs(inputs, &out);
  const Note note = number(call, out);
  return run(call, steps::reduce_scatter(channel(), note, reduce, in, out), opts.asyncOp);
}

WorkPtr BackendShm::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
    const c10d::ReduceScatterOptions& opts) {
  Call call = begin(Kind::reduce_scatter, opts.timeout);
  const auto reduce = reduction(call, output, opts.reduceOp);
  const Bytes out = call.output(output);
  const Pieces in = call.pieces(call.input(scaled(input, opts.reduceOp)), out);
  const Note note = number(call, out);
  return run(call, steps::reduce_scatter(channel(), note, reduce, in, out), opts.asyncOp);
}
// [/reductions]

// [gathers]
// [all-gathers]
WorkPtr BackendShm::allgather(TensorLists& output_lists, Tensors& inputs,
    const c10d::AllgatherOptions& opts) {
  Call call = begin(Kind::all_gather, opts.timeout);
  const Bytes in = call.input(call.single(inputs, "input tensor"));
  const Pieces out = call.outputs(call.single(output_lists, "list of output tensors"), &in);
  return run(call, steps::all_gather(channel(), number(call, in), in, out), opts.asyncOp);
}

WorkPtr BackendShm::_allgather_base(at::Tensor& output, at::Tensor& input,
    const c10d::AllgatherOptions& opts) {
  Call call = begin(Kind::all_gather, opts.timeout);
  const Bytes in = call.input(input);
  const Pieces out = call.pieces(call.output(output), in);
  return run(call, steps::all_gather(channel(), number(call, in), in, out), opts.asyncOp);
}
// [/all-gathers]

WorkPtr BackendShm::gather(TensorLists& output_lists, Tensors& inputs,
    const c10d::GatherOptions& opts) {
  Call call = begin(Kind::gather, opts.timeout);
  const int root = call.rank(opts.rootRank, "root");
  const Bytes in = call.input(call.single(inputs, "input tensor"));
  Pieces out;
  if (root == getRank()) {
    out = call.outputs(call.single(output_lists, "list of output tensors"), &in);
  } else {
    call.require(output_lists.empty(), " takes outputs on its root only");
  }
  return run(call, steps::gather(channel(), number(call, in, root), in, out), opts.asyncOp);
}

WorkPtr BackendShm::gather_into_tensor(
    at::Tensor& output, at::Tensor& input, const c10d::GatherOptions& opts) {
  Call call = begin(Kind::gather, opts.timeout);
  const int root = call.rank(opts.rootRank, "root");
  const Bytes in = call.input(input);
  const Pieces out = root == getRank() ? call.pieces(call.output(output), in) : Pieces();
  return run(call, steps::gather(channel(), number(call, in, root), in, out), opts.asyncOp);
}

WorkPtr BackendShm::scatter(Tensors& outputs, TensorLists& input_lists,
    const c10d::ScatterOptions& opts) {
  Call call = begin(Kind::scatter, opts.timeout);
  const int root = call.rank(opts.rootRank, "root");
  const Bytes out = call.output(call.single(outputs, "output tensor"));
  Pieces in;
  if (root == getRank()) {
    in = call.inputs(call.single(input_lists, "list of input tensors"), &out);
  } else {
    call.require(input_lists.empty(), " takes inputs on its root only");
  }
  return run(call, steps::scatter(channel(), number(call, out, root), in, out), opts.asyncOp);
}
// [/gathers]

// [others]
WorkPtr BackendShm::broadcast(Tensors& tensors, const c10d::BroadcastOptions& opts) {
  Call call = begin(Kind::broadcast, opts.timeout);
  const int root = call.rank(opts.rootRank, "root");
  const auto& tensor = call.single(tensors, "tensor");
  const Bytes data = root == getRank() ? call.input(tensor) : call.output(tensor);
  call.results = {tensor};
  return run(call, steps::broadcast(channel(), number(call, data, root), data), opts.asyncOp);
}

WorkPtr BackendShm::alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& opts) {
  Call call = begin(Kind::all_to_all, opts.timeout);
  const Pieces out = call.outputs(outputs), in = call.inputs(inputs);
  return run(call, steps::all_to_all(channel(), number(call), in, out), opts.asyncOp);
}

WorkPtr BackendShm::alltoall_base(at::Tensor& output, at::Tensor& input,
    std::vector<int64_t>& output_rows, std::vector<int64_t>& input_rows,
    const c10d::AllToAllOptions& opts) {
  Call call = begin(Kind::all_to_all, opts.timeout);
  const Pieces out = call.rows(output, call.output(output), output_rows);
  const Pieces in = call.rows(input, call.input(input), input_rows);
  return run(call, steps::all_to_all(channel(), number(call), in, out), opts.asyncOp);
}

WorkPtr BackendShm::barrier(const c10d::BarrierOptions& opts) {
  Call call = begin(Kind::barrier, opts.timeout);
  return run(call, steps::barrier(channel(), number(call)), opts.asyncOp);
}

void BackendShm::monitoredBarrier(const c10d::BarrierOptions& opts, bool wait_all) {
  // Whoever calls this has chosen the timeout, be it 0.
  Call call = begin(Kind::monitored_barrier, std::max(opts.timeout, milliseconds(1)));
  call.name_all = wait_all;
  try {
    run(call, steps::barrier(channel(), number(call)), /*async=*/false);
  } catch (const c10::DistBackendError& error) {
    const std::string reached = "Rank " + std::to_string(getRank()) +
        " successfully reached monitoredBarrier, but received errors while waiting for send/recv "
        "from rank 0: "; // what gloo says on all other ranks
    C10_THROW_ERROR(
        DistBackendError, (getRank() == 0 ? "" : reached) + error.what_without_backtrace());
  }
}
// [/others]

// [coalesced]
WorkPtr BackendShm::allreduce_coalesced(
    Tensors& tensors, const c10d::AllreduceCoalescedOptions& opts) {
  const auto count = tensors.size();
  return together(Kind::all_reduce, opts.asyncOp, count, count, [&](size_t i) {
    Tensors one{tensors[i]};
    allreduce(one, opts);
  });
}

WorkPtr BackendShm::reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
    const c10d::ReduceScatterOptions& opts) {
  return together(Kind::reduce_scatter, opts.asyncOp, outputs.size(), inputs.size(),
      [&](size_t i) { _reduce_scatter_base(outputs[i], inputs[i], opts); });
}

WorkPtr BackendShm::allgather_into_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions& opts) {
  return together(Kind::all_gather, opts.asyncOp, outputs.size(), inputs.size(),
      [&](size_t i) { _allgather_base(outputs[i], inputs[i], opts); });
}

WorkPtr BackendShm::allgather_coalesced(TensorLists& output_lists, Tensors& inputs,
    const c10d::AllgatherOptions& opts) {
  size_t least = inputs.size();
  for (const auto& list : output_lists) least = std::min(least, list.size());
  return together(Kind::all_gather, opts.asyncOp, least, inputs.size(), [&](size_t i) {
    TensorLists outputs(1); // output_lists[rank][i] comes from that rank
    for (const auto& list : output_lists) outputs[0].push_back(list[i]);
    Tensors one{inputs[i]};
    allgather(outputs, one, opts);
  });
}
// [/coalesced]

// [messages]
WorkPtr BackendShm::send(Tensors& tensors, int to, int tag) {
  Call call = begin(Kind::send, kNoTimeout);
  call.rank(to, "destination");
  return message(call, call.input(call.single(tensors, "tensor")), to, tag);
}

WorkPtr BackendShm::recv(Tensors& tensors, int from, int tag) {
  Call call = begin(Kind::receive, kNoTimeout);
  call.rank(from, "source");
  return message(call, call.output(call.single(tensors, "tensor")), from, tag);
}

WorkPtr BackendShm::recvAnysource(Tensors& tensors, int tag) {
  Call call = begin(Kind::receive, kNoTimeout);
  return message(call, call.output(call.single(tensors, "tensor")), kAnySource, tag);
}

WorkPtr BackendShm::message(Call& call, Bytes data, int other, int tag) {
  call.require(tag >= 0, ": tag ", tag, " is negative");
  call.note.bytes = data.size();
  call.note.tag = tag;
  call.note.root = other;
  auto& mailbox = progress_->mailbox();
  if (call.note.kind == Kind::send) {
    return run(call, mailbox.send(call.note, data, other), true, Progress::sends_to(other));
  }
  auto source = std::make_shared<std::atomic<int>>(other);
  Steps steps = mailbox.receive(call.note, data, source);
  return run(call, std::move(steps), true, Progress::kReceives, source);
}
// [/messages]

} // namespace shm_collectives
