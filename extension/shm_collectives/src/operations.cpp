// Every operation of c10d::Backend: which tensors it takes, and which steps.

#include "backend.hpp"

namespace shm_collectives {

namespace {

// [single]
template <class T>
T& single(const Call& call, std::vector<T>& list, const char* what) {
  call.require(list.size() == 1, " takes one ", what, ", got ", list.size());
  return list[0];
}

int checked_rank(const Call& call, int64_t rank, int size, const char* what) {
  call.require(rank >= 0 && rank < size,
      ": ", what, " ", rank, " is not a rank of a group of ", size);
  return static_cast<int>(rank);
}
// [/single]

// [equal-pieces]
// One tensor for the pieces of all ranks, each as large as `piece`.
Pieces equal_pieces(const Call& call, Bytes all, Bytes piece, int ranks) {
  call.require(all.size() == piece.size() * ranks, " takes one tensor that is ", ranks,
      " times as large as the other, got ", all.size(), " and ", piece.size(), " bytes");
  Pieces pieces;
  for (int rank = 0; rank < ranks; ++rank) {
    pieces.push_back(all.subspan(rank * piece.size(), piece.size()));
  }
  return pieces;
}

void require_size(const Call& call, const Pieces& pieces, Bytes piece) {
  for (const Bytes one : pieces) {
    call.require(one.size() == piece.size(), " takes tensors of one size, got ", one.size(),
        " and ", piece.size(), " bytes");
  }
}
// [/equal-pieces]

// [premul-sum]
// The input, or what PREMUL_SUM makes of it.
at::Tensor scaled(const at::Tensor& input, const c10d::ReduceOp& op) {
  if (op.op_ != c10d::ReduceOp::PREMUL_SUM) return input;
  const auto& factor = dynamic_cast<const c10d::NCCLPreMulSumSupplement&>(*op.supplement_);
  const double number = factor.tensor_factor.defined() ? factor.tensor_factor.item<double>()
      : factor.double_factor;
  const auto dtype = input.scalar_type();
  const bool narrow = at::isReducedFloatingType(dtype) || input.itemsize() == 1;
  return input.to(narrow ? at::kFloat : dtype).mul(number).to(dtype);
}
// [/premul-sum]

} // namespace

// [reductions]
Reduction BackendShm::reduction(
    Call& call, const at::Tensor& tensor, const c10d::ReduceOp& op) const {
  call.note.op = static_cast<Op>(op.op_);
  return {tensor.scalar_type(), call.note.op, getSize()};
}

// The steps of all_reduce, and of reduce, where only the root has an output.
Steps BackendShm::reduce_to(Call& call, Tensors& tensors, const c10d::ReduceOp& op, int root) {
  const auto& tensor = single(call, tensors, "tensor");
  const auto reduce = reduction(call, tensor, op);
  Bytes input, output;
  if (root == -1 || root == getRank()) input = output = call.in_place(tensor);
  if (output.empty() || op.op_ == c10d::ReduceOp::PREMUL_SUM) {
    input = call.input(scaled(tensor, op));
  }
  return steps::all_reduce(channel(), number(call, input, root), reduce, input, output);
}

WorkPtr BackendShm::allreduce(Tensors& tensors, const c10d::AllreduceOptions& opts) {
  Call call = begin(Kind::all_reduce, opts.timeout);
  return run(call, reduce_to(call, tensors, opts.reduceOp, -1), opts.asyncOp);
}

WorkPtr BackendShm::allreduce_coalesced(
    Tensors& tensors, const c10d::AllreduceCoalescedOptions& opts) {
  return together(opts.asyncOp, [&] {
    for (const auto& tensor : tensors) {
      Tensors one{tensor};
      allreduce(one, opts);
    }
  });
}

WorkPtr BackendShm::reduce(Tensors& tensors, const c10d::ReduceOptions& opts) {
  Call call = begin(Kind::reduce, opts.timeout);
  const int root = checked_rank(call, opts.rootRank, getSize(), "root");
  return run(call, reduce_to(call, tensors, opts.reduceOp, root), opts.asyncOp);
}

WorkPtr BackendShm::reduce_scatter(Tensors& outputs, TensorLists& input_lists,
    const c10d::ReduceScatterOptions& opts) {
  Call call = begin(Kind::reduce_scatter, opts.timeout);
  const auto& output = single(call, outputs, "output tensor");
  const auto reduce = reduction(call, output, opts.reduceOp);
  const Bytes out = call.output(output);
  Tensors inputs;
  for (const auto& input : single(call, input_lists, "list of input tensors")) {
    inputs.push_back(scaled(input, opts.reduceOp));
  }
  const Pieces in = call.inputs(inputs, getSize());
  require_size(call, in, out);
  return run(call, steps::reduce_scatter(channel(), number(call, out), reduce, in, out),
      opts.asyncOp);
}

WorkPtr BackendShm::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
    const c10d::ReduceScatterOptions& opts) {
  Call call = begin(Kind::reduce_scatter, opts.timeout);
  const auto reduce = reduction(call, output, opts.reduceOp);
  const Bytes out = call.output(output);
  const Pieces in = equal_pieces(call, call.input(scaled(input, opts.reduceOp)), out, getSize());
  return run(call, steps::reduce_scatter(channel(), number(call, out), reduce, in, out),
      opts.asyncOp);
}

WorkPtr BackendShm::reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
    const c10d::ReduceScatterOptions& opts) {
  TORCH_CHECK_VALUE(outputs.size() == inputs.size(),
      "Backend shm: reduce_scatter takes as many outputs as inputs");
  return together(opts.asyncOp, [&] {
    for (size_t i = 0; i < inputs.size(); ++i) _reduce_scatter_base(outputs[i], inputs[i], opts);
  });
}
// [/reductions]

// [gathers]
WorkPtr BackendShm::allgather(TensorLists& output_lists, Tensors& inputs,
    const c10d::AllgatherOptions& opts) {
  Call call = begin(Kind::all_gather, opts.timeout);
  const Bytes in = call.input(single(call, inputs, "input tensor"));
  const Pieces out = call.outputs(single(call, output_lists, "list of output tensors"), getSize());
  require_size(call, out, in);
  return run(call, steps::all_gather(channel(), number(call, in), in, out), opts.asyncOp);
}

WorkPtr BackendShm::allgather_coalesced(TensorLists& output_lists, Tensors& inputs,
    const c10d::AllgatherOptions& opts) {
  return together(opts.asyncOp, [&] {
    for (size_t i = 0; i < inputs.size(); ++i) {
      TensorLists outputs(1); // output_lists[rank][i] comes from that rank
      for (const auto& list : output_lists) {
        TORCH_CHECK_VALUE(list.size() == inputs.size(),
            "Backend shm: all_gather takes as many outputs of each rank as " "inputs");
        outputs[0].push_back(list[i]);
      }
      Tensors one{inputs[i]};
      allgather(outputs, one, opts);
    }
  });
}

WorkPtr BackendShm::_allgather_base(at::Tensor& output, at::Tensor& input,
    const c10d::AllgatherOptions& opts) {
  Call call = begin(Kind::all_gather, opts.timeout);
  const Bytes in = call.input(input);
  const Pieces out = equal_pieces(call, call.output(output), in, getSize());
  return run(call, steps::all_gather(channel(), number(call, in), in, out), opts.asyncOp);
}

WorkPtr BackendShm::allgather_into_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions& opts) {
  TORCH_CHECK_VALUE(outputs.size() == inputs.size(),
      "Backend shm: all_gather takes as many outputs as inputs");
  return together(opts.asyncOp, [&] {
    for (size_t i = 0; i < inputs.size(); ++i) _allgather_base(outputs[i], inputs[i], opts);
  });
}

WorkPtr BackendShm::gather(TensorLists& output_lists, Tensors& inputs,
    const c10d::GatherOptions& opts) {
  Call call = begin(Kind::gather, opts.timeout);
  const int root = checked_rank(call, opts.rootRank, getSize(), "root");
  const Bytes in = call.input(single(call, inputs, "input tensor"));
  Pieces out;
  if (root == getRank()) {
    out = call.outputs(single(call, output_lists, "list of output tensors"), getSize());
    require_size(call, out, in);
  } else {
    call.require(output_lists.empty(), " takes outputs on its root only");
  }
  return run(call, steps::gather(channel(), number(call, in, root), in, out), opts.asyncOp);
}

WorkPtr BackendShm::gather_into_tensor(
    at::Tensor& output, at::Tensor& input, const c10d::GatherOptions& opts) {
  Call call = begin(Kind::gather, opts.timeout);
  const int root = checked_rank(call, opts.rootRank, getSize(), "root");
  const Bytes in = call.input(input);
  const Pieces out = root == getRank() ? equal_pieces(call, call.output(output), in, getSize())
      : Pieces();
  return run(call, steps::gather(channel(), number(call, in, root), in, out), opts.asyncOp);
}
// [/gathers]

// [others]
WorkPtr BackendShm::broadcast(Tensors& tensors, const c10d::BroadcastOptions& opts) {
  Call call = begin(Kind::broadcast, opts.timeout);
  const int root = checked_rank(call, opts.rootRank, getSize(), "root");
  const auto& tensor = single(call, tensors, "tensor");
  const Bytes data = root == getRank() ? call.input(tensor) : call.output(tensor);
  call.results = {tensor};
  return run(call, steps::broadcast(channel(), number(call, data, root), data), opts.asyncOp);
}

WorkPtr BackendShm::scatter(Tensors& outputs, TensorLists& input_lists,
    const c10d::ScatterOptions& opts) {
  Call call = begin(Kind::scatter, opts.timeout);
  const int root = checked_rank(call, opts.rootRank, getSize(), "root");
  const Bytes out = call.output(single(call, outputs, "output tensor"));
  Pieces in;
  if (root == getRank()) {
    in = call.inputs(single(call, input_lists, "list of input tensors"), getSize());
    require_size(call, in, out);
  } else {
    call.require(input_lists.empty(), " takes inputs on its root only");
  }
  return run(call, steps::scatter(channel(), number(call, out, root), in, out), opts.asyncOp);
}

WorkPtr BackendShm::alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& opts) {
  Call call = begin(Kind::all_to_all, opts.timeout);
  const Pieces out = call.outputs(outputs, getSize());
  const Pieces in = call.inputs(inputs, getSize());
  return run(call, steps::all_to_all(channel(), number(call), in, out), opts.asyncOp);
}

WorkPtr BackendShm::alltoall_base(at::Tensor& output, at::Tensor& input,
    std::vector<int64_t>& output_rows, std::vector<int64_t>& input_rows,
    const c10d::AllToAllOptions& opts) {
  Call call = begin(Kind::all_to_all, opts.timeout);
  const Pieces out = call.split(output, call.output(output), output_rows, getSize());
  const Pieces in = call.split(input, call.input(input), input_rows, getSize());
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

// [messages]
WorkPtr BackendShm::send(Tensors& tensors, int to, int tag) {
  Call call = begin(Kind::send, kNoTimeout);
  checked_rank(call, to, getSize(), "destination");
  return message(call, call.input(single(call, tensors, "tensor")), to, tag);
}

WorkPtr BackendShm::recv(Tensors& tensors, int from, int tag) {
  Call call = begin(Kind::receive, kNoTimeout);
  checked_rank(call, from, getSize(), "source");
  return message(call, call.output(single(call, tensors, "tensor")), from, tag);
}

WorkPtr BackendShm::recvAnysource(Tensors& tensors, int tag) {
  Call call = begin(Kind::receive, kNoTimeout);
  return message(call, call.output(single(call, tensors, "tensor")), kAnySource, tag);
}

WorkPtr BackendShm::message(Call& call, Bytes data, int other, int tag) {
  call.require(tag >= 0, ": tag ", tag, " is negative");
  call.note.bytes = data.size();
  call.note.tag = tag;
  call.note.root = other;
  auto& mailbox = progress_->mailbox();
  if (call.note.kind == Kind::send) {
    return run(call, mailbox.send(call.note, data, other), /*async=*/true,
        Progress::sends_to(other));
  }
  auto source = std::make_shared<std::atomic<int>>(other);
  return run(call, mailbox.receive(call.note, data, source), /*async=*/true, Progress::kReceives,
      source);
}
// [/messages]

} // namespace shm_collectives
