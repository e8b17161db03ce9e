#pragma once

#include "group.hpp"

namespace frame {

using TensorLists = std::vector<Tensors>;
using BackendPtr = c10::intrusive_ptr<c10d::Backend>;
using OptionsBase = c10::intrusive_ptr<c10d::Backend::Options>;

// Every operation of c10d::Backend: which tensors it takes, and which bytes a transport
// gets. `Runner` is a class with the methods of Group, which runs the operations.
template <class Runner>
class BackendOn : public c10d::Backend {
 public:
  BackendOn(const StorePtr& store, int rank, int size, OptionsPtr options)
      : c10d::Backend(rank, size), group_(store, rank, size, std::move(options)) {}

  const std::string getBackendName() const override { return options().backend; }
  OptionsBase getBackendOptions() override {
    return OptionsBase::reclaim_copy(&group_.options());
  }
  void setTimeout(milliseconds timeout) override { group_.set_timeout(timeout); }
  uint64_t getSequenceNumberForGroup() override { return group_.sequence(); }
  void setSequenceNumberForGroup() override {} // it starts at 0 on every rank
  void shutdown() override { group_.shutdown(); }
  void abort() override { group_.abort(); }
  void startCoalescing() override { group_.start_coalescing(); }
  WorkPtr endCoalescing() override { return group_.end_coalescing(); }
  // Without `override`, as below: after PyTorch 2.15, it may no longer be virtual.
  bool supportsSplitting() const { return true; }

  // [split]
  // Returns the backend of a group of these ranks; on the other ranks, a null pointer.
  BackendPtr split(const StorePtr& store, const std::vector<int>& ranks,
      const OptionsBase& given) override {
    const auto mine = std::ranges::find(ranks, getRank());
    if (mine == ranks.end()) return nullptr;
    const auto own = copy_of(given);
    const auto& names = options().global_ranks_in_group; // empty: those of the group
    own->global_ranks_in_group.clear();
    for (const int rank : ranks) {
      own->global_ranks_in_group.push_back(names.empty() ? rank : names.at(rank));
    }
    const auto rank = static_cast<int>(mine - ranks.begin());
    return merge(store, own, rank, static_cast<int>(ranks.size()));
  }

  // [/split]
  // The group of all ranks that meet at the store.
  BackendPtr merge(const StorePtr& store, const OptionsBase& given, const int& rank,
      const int& size) override {
    const WithoutGil without_gil;
    return options().start(store, rank, size, copy_of(given));
  }

  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& opts) override {
    return run(Kind::all_reduce, opts, [&](Arguments& call) {
      const auto& tensor = call.single(tensors, "tensor");
      set_reduction(call, tensor, opts.reduceOp);
      if (tensor.is_sparse()) {
        call.in = {call.sparse(tensor)};
        return;
      }
      reduce_to(call, tensor, opts.reduceOp, kEveryone);
    });
  }

  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& opts) override {
    return run(Kind::reduce, opts, [&](Arguments& call) {
      const int root = call.rank(opts.rootRank, "root");
      const auto& tensor = call.single(tensors, "tensor");
      set_reduction(call, tensor, opts.reduceOp);
      reduce_to(call, tensor, opts.reduceOp, root);
    });
  }

  WorkPtr reduce_scatter(Tensors& outputs, TensorLists& input_lists,
      const c10d::ReduceScatterOptions& opts) override {
    return run(Kind::reduce_scatter, opts, [&](Arguments& call) {
      const auto& output = call.single(outputs, "output tensor");
      set_reduction(call, output, opts.reduceOp);
      call.out = {call.output(output)};
      Tensors inputs = call.single(input_lists, "list of input tensors");
      for (auto& input : inputs) input = scaled(input, opts.reduceOp);
      call.in = call.inputs(inputs);
      const size_t mine = call.in[getRank()].size();
      call.require(mine == call.out[0].size(),
          " takes an output as large as the input of "
          "its rank, got ",
          call.out[0].size(), " and ", mine, " bytes");
      call.set_sizes(call.in);
    });
  }

  WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
      const c10d::ReduceScatterOptions& opts) override {
    return run(Kind::reduce_scatter, opts, [&](Arguments& call) {
      set_reduction(call, output, opts.reduceOp);
      const Bytes out = call.output(output);
      call.in = call.pieces(call.input(scaled(input, opts.reduceOp)), out);
      call.out = {out};
      call.set_size(out);
    });
  }

  // [all-gathers]
  WorkPtr allgather(TensorLists& output_lists, Tensors& inputs,
      const c10d::AllgatherOptions& opts) override {
    return run(Kind::all_gather, opts, [&](Arguments& call) {
      const Bytes in = call.input(call.single(inputs, "input tensor"));
      call.out = call.outputs(call.single(output_lists, "list of output tensors"), &in);
      call.in = {in};
      call.set_size(in);
    });
  }

  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input,
      const c10d::AllgatherOptions& opts) override {
    return run(Kind::all_gather, opts, [&](Arguments& call) {
      const Bytes in = call.input(input);
      call.out = call.pieces(call.output(output), in);
      call.in = {in};
      call.set_size(in);
    });
  }
  // [/all-gathers]

  WorkPtr gather(TensorLists& output_lists, Tensors& inputs,
      const c10d::GatherOptions& opts) override {
    return run(Kind::gather, opts, [&](Arguments& call) {
      const int root = call.rank(opts.rootRank, "root");
      const Bytes in = call.input(call.single(inputs, "input tensor"));
      // With torchcomms enabled, PyTorch passes an empty list on other ranks, not none.
      call.require(
          root == getRank() || std::ranges::all_of(output_lists, std::ranges::empty),
          " takes outputs on its root only");
      if (root == getRank()) {
        call.out =
            call.outputs(call.single(output_lists, "list of output tensors"), &in);
      }
      call.in = {in};
      call.set_size(in, root);
    });
  }

  WorkPtr gather_into_tensor( // virtual from PyTorch 2.14 on
      at::Tensor& output, at::Tensor& input, const c10d::GatherOptions& opts) {
    return run(Kind::gather, opts, [&](Arguments& call) {
      const int root = call.rank(opts.rootRank, "root");
      const Bytes in = call.input(input);
      if (root == getRank()) call.out = call.pieces(call.output(output), in);
      call.in = {in};
      call.set_size(in, root);
    });
  }

  WorkPtr scatter(Tensors& outputs, TensorLists& input_lists,
      const c10d::ScatterOptions& opts) override {
    return run(Kind::scatter, opts, [&](Arguments& call) {
      const int root = call.rank(opts.rootRank, "root");
      const Bytes out = call.output(call.single(outputs, "output tensor"));
      call.require(
          root == getRank() || input_lists.empty(), " takes inputs on its root only");
      if (root == getRank()) {
        call.in = call.inputs(call.single(input_lists, "list of input tensors"), &out);
      }
      call.out = {out};
      call.set_size(out, root);
    });
  }

  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& opts) override {
    return run(Kind::broadcast, opts, [&](Arguments& call) {
      const int root = call.rank(opts.rootRank, "root");
      const auto& tensor = call.single(tensors, "tensor");
      const bool sends = root == getRank();
      const Bytes data = sends ? call.input(tensor) : call.output(tensor);
      (sends ? call.in : call.out) = {data};
      call.results = {tensor};
      call.set_size(data, root);
    });
  }

  WorkPtr alltoall(
      Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& opts) override {
    return run(Kind::all_to_all, opts, [&](Arguments& call) {
      call.out = call.outputs(outputs);
      call.in = call.inputs(apart(inputs, outputs));
      call.set_even();
    });
  }

  WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input,
      std::vector<int64_t>& output_rows, std::vector<int64_t>& input_rows,
      const c10d::AllToAllOptions& opts) override {
    return run(Kind::all_to_all, opts, [&](Arguments& call) {
      call.out = call.rows(output, call.output(output), output_rows);
      call.in = call.rows(input, call.input(apart(input, output)), input_rows);
      call.set_even();
    });
  }

  WorkPtr barrier(const c10d::BarrierOptions& opts) override {
    return run(Kind::barrier, opts, [](Arguments&) {});
  }

  void monitoredBarrier(const c10d::BarrierOptions& opts, bool wait_all) override {
    // -1: the call has no timeout. 0 is a timeout, which begin() would take for none.
    const auto timeout = opts.timeout == kNoTimeout ? milliseconds(1) : opts.timeout;
    auto call = group_.begin(Kind::monitored_barrier, timeout);
    call.name_all = wait_all;
    group_.run(std::move(call), /*async=*/false);
  }

  WorkPtr allreduce_coalesced(
      Tensors& tensors, const c10d::AllreduceCoalescedOptions& opts) override {
    const size_t count = tensors.size();
    return group_.together(Kind::all_reduce, opts.asyncOp, count, count, [&](size_t i) {
      Tensors one{tensors[i]};
      allreduce(one, opts);
    });
  }

  WorkPtr reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
      const c10d::ReduceScatterOptions& opts) override {
    return group_.together(Kind::reduce_scatter, opts.asyncOp, outputs.size(),
        inputs.size(),
        [&](size_t i) { _reduce_scatter_base(outputs[i], inputs[i], opts); });
  }

  // [coalesced]
  WorkPtr allgather_into_tensor_coalesced(
      Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions& opts) override {
    return group_.together(Kind::all_gather, opts.asyncOp, outputs.size(),
        inputs.size(), [&](size_t i) { _allgather_base(outputs[i], inputs[i], opts); });
  }
  // [/coalesced]

  WorkPtr allgather_coalesced(TensorLists& output_lists, Tensors& inputs,
      const c10d::AllgatherOptions& opts) override {
    size_t least = inputs.size();
    for (const auto& list : output_lists) least = std::min(least, list.size());
    return group_.together(
        Kind::all_gather, opts.asyncOp, least, inputs.size(), [&](size_t i) {
          TensorLists outputs(1); // output_lists[rank][i] comes from that rank
          for (const auto& list : output_lists) outputs[0].push_back(list[i]);
          Tensors one{inputs[i]};
          allgather(outputs, one, opts);
        });
  }

  WorkPtr send(Tensors& tensors, int to, int tag) override {
    return run(Kind::send, Message(), [&](Arguments& call) {
      call.in = {call.input(call.single(tensors, "tensor"))};
      set_message(call, call.in[0], call.rank(to, "destination"), tag);
    });
  }

  WorkPtr recv(Tensors& tensors, int from, int tag) override {
    return run(Kind::receive, Message(), [&](Arguments& call) {
      receive(call, tensors, call.rank(from, "source"), tag);
    });
  }

  WorkPtr recvAnysource(Tensors& tensors, int tag) override {
    return run(Kind::receive, Message(),
        [&](Arguments& call) { receive(call, tensors, kAnySource, tag); });
  }

 private:
  const frame::Options& options() const { return group_.options(); }

  OptionsPtr copy_of(const OptionsBase& given) const {
    const auto ours = c10::dynamic_intrusive_pointer_cast<frame::Options>(given);
    TORCH_CHECK_VALUE(ours && typeid(*ours) == typeid(options()), "Backend ",
        options().backend, " takes options of its own class Options");
    return ours->copy();
  }

  // The options of a message, which c10d gives none.
  struct Message {
    milliseconds timeout = kNoTimeout;
    bool asyncOp = true;
  };

  // Runs the call whose tensors `fill` checks, and turns into bytes.
  template <class CallOptions, class Fill>
  WorkPtr run(Kind kind, const CallOptions& opts, const Fill& fill) {
    return group_.run_late([&] {
      auto call = group_.begin(kind, opts.timeout);
      fill(call);
      call.keep_inputs();
      return group_.run(std::move(call), opts.asyncOp);
    });
  }

  void set_reduction(
      Arguments& call, const at::Tensor& tensor, const c10d::ReduceOp& op) const {
    call.note.op = static_cast<Op>(op.op_);
    call.reduction.emplace(
        options().backend, tensor.scalar_type(), call.note.op, getSize());
  }

  // To every rank, or to the root, which alone has an output.
  void reduce_to(
      Arguments& call, const at::Tensor& tensor, const c10d::ReduceOp& op, int root) {
    if (root == kEveryone || root == getRank()) {
      call.in = call.out = {call.output(tensor, /*in_place=*/true)};
    }
    if (call.out.empty() || op.op_ == c10d::ReduceOp::PREMUL_SUM) {
      call.in = {call.input(scaled(tensor, op))};
    }
    call.results = {tensor};
    call.set_size(call.in[0], root);
  }

  static void receive(Arguments& call, Tensors& tensors, int from, int tag) {
    call.out = {call.output(call.single(tensors, "tensor"))};
    call.source = std::make_shared<std::atomic<int>>(from);
    set_message(call, call.out[0], from, tag);
  }

  static void set_message(Arguments& call, Bytes data, int other, int tag) {
    call.require(tag >= 0, ": tag ", tag, " is negative");
    call.note.tag = tag;
    call.set_size(data, other);
  }

 protected:
  Runner group_;
};

} // namespace frame
