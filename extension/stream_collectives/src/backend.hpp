#pragma once

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "group.hpp"

namespace stream_collectives {

using c10d::OpType, c10d::ReduceOp;
using TensorLists = std::vector<Tensors>;

// What kind of view of the memory the inner backend gets.
enum class As { bytes, numbers };

// The operations of c10d::Backend for tensors of a device with streams. Each one checks
// its arguments on the host, because an error in the stream comes late, and hands views
// of the memory to the inner backend. To move data, it sees bytes; to reduce, numbers.
class BackendSimccl final : public c10d::Backend {
 public:
  BackendSimccl(
      StorePtr store, BackendPtr inner, int rank, int size, OptionsPtr options)
      : Backend(rank, size),
        store_(std::move(store)),
        group_(
            std::make_shared<StreamGroup>(std::move(inner), std::move(options), rank)) {
  }
  ~BackendSimccl() override { plans().erase(this); }

  const std::string getBackendName() const override { return "simccl"; }
  OptionsBase getBackendOptions() override {
    return OptionsBase::reclaim_copy(&group_->options());
  }
  void setTimeout(milliseconds timeout) override {
    group_->options().timeout = timeout;
  }
  uint64_t getSequenceNumberForGroup() override { return group_->sequence(); }
  void setSequenceNumberForGroup() override {} // it starts at 0 on every rank
  void shutdown() override { group_->shutdown(); }
  void abort() override { group_->abort(); }
  bool supportsSplitting() const override { return true; }
  bool supportsCoalescing() const override { return true; }
  // With init_process_group(device_id=...): takes the stream now, not with the first call.
  void eagerConnectSingleDevice(at::Device device) override { group_->stream(device); }
  c10::Stream stream(const at::Device& device) { return group_->stream(device); }

  BackendPtr split(const StorePtr& store, const std::vector<int>& ranks,
      const OptionsBase& given) override {
    const auto mine = std::ranges::find(ranks, getRank());
    if (mine == ranks.end()) return nullptr;
    const auto rank = static_cast<int>(mine - ranks.begin());
    return merge(store, given, rank, static_cast<int>(ranks.size()));
  }
  BackendPtr merge(const StorePtr& store, const OptionsBase& given, const int& rank,
      const int& size) override {
    const auto own = c10::dynamic_intrusive_pointer_cast<OptionsSimccl>(given);
    TORCH_CHECK_VALUE(own, "Backend simccl takes options of its own class Options");
    const frame::WithoutGil without_gil;
    return own->start(store, rank, size, own->copy());
  }

  // [coalescing]
  void startCoalescing() override {
    TORCH_CHECK_VALUE(!plans().count(this), "Backend simccl: coalesces already");
    plans()[this] = begin(OpType::COALESCED, "coalesced");
  }
  WorkPtr endCoalescing() override {
    auto entry = plans().extract(this);
    TORCH_CHECK_VALUE(entry, "Backend simccl: does not coalesce");
    auto& plan = entry.mapped();
    if (!plan.device) plan.device = current_device();
    return group_->launch(std::move(plan));
  }
  // [/coalescing]

  // [all-reduce]
  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& opts) override {
    auto plan = begin(OpType::ALLREDUCE, "all_reduce", opts.timeout);
    const auto& tensor = single(plan, tensors);
    const auto op = checked(plan, opts.reduceOp, tensor);
    const auto view = output(plan, tensor, As::numbers);
    return run(
        plan,
        [view, op](c10d::Backend& inner) {
          Tensors tensors{view};
          c10d::AllreduceOptions opts;
          opts.reduceOp = op;
          return inner.allreduce(tensors, opts);
        },
        average(opts.reduceOp, view));
  }
  // [/all-reduce]

  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& opts) override {
    auto plan = begin(OpType::REDUCE, "reduce", opts.timeout);
    const auto& tensor = single(plan, tensors);
    const auto op = checked(plan, opts.reduceOp, tensor);
    const int root = rank_in(plan, opts.rootRank);
    const auto view = output(plan, tensor, As::numbers);
    const bool mine = root == getRank();
    return run(
        plan,
        [view, op, root, mine](c10d::Backend& inner) {
          Tensors tensors{mine ? view : view.clone()}; // gloo would write to it
          c10d::ReduceOptions opts;
          opts.reduceOp = op;
          opts.rootRank = root;
          return inner.reduce(tensors, opts);
        },
        mine ? average(opts.reduceOp, view) : nullptr);
  }

  WorkPtr _reduce_scatter_base(at::Tensor& out, at::Tensor& in,
      const c10d::ReduceScatterOptions& opts) override {
    auto plan = begin(OpType::_REDUCE_SCATTER_BASE, "reduce_scatter", opts.timeout);
    require(plan, in.numel() == out.numel() * getSize(), "an input as large as ",
        getSize(), " outputs");
    return reduce_scatter(plan, out, {in}, opts);
  }

  WorkPtr reduce_scatter(Tensors& outputs, TensorLists& inputs,
      const c10d::ReduceScatterOptions& opts) override {
    auto plan = begin(OpType::REDUCE_SCATTER, "reduce_scatter", opts.timeout);
    const auto& out = single(plan, outputs);
    const auto& list = for_each_rank(plan, single(plan, inputs), out);
    return reduce_scatter(plan, out, list, opts);
  }

  WorkPtr _allgather_base(
      at::Tensor& out, at::Tensor& in, const c10d::AllgatherOptions& opts) override {
    auto plan = begin(OpType::_ALLGATHER_BASE, "all_gather", opts.timeout);
    require(plan, out.numel() == in.numel() * getSize(), "an output as large as ",
        getSize(), " inputs");
    const auto from = input(plan, in), to = output(plan, out);
    return run(plan, [from, to](c10d::Backend& inner) {
      auto target = to, source = from;
      return inner._allgather_base(target, source);
    });
  }

  WorkPtr allgather(TensorLists& outputs, Tensors& inputs,
      const c10d::AllgatherOptions& opts) override {
    auto plan = begin(OpType::ALLGATHER, "all_gather", opts.timeout);
    const auto& in = single(plan, inputs);
    const auto to = all_outputs(plan, for_each_rank(plan, single(plan, outputs), in));
    return run(plan, [to, from = input(plan, in)](c10d::Backend& inner) {
      TensorLists outputs{to};
      Tensors inputs{from};
      return inner.allgather(outputs, inputs);
    });
  }

  WorkPtr gather(
      TensorLists& outputs, Tensors& inputs, const c10d::GatherOptions& opts) override {
    auto plan = begin(OpType::GATHER, "gather", opts.timeout);
    const auto& in = single(plan, inputs);
    const int root = rank_in(plan, opts.rootRank);
    TensorLists to;
    require(plan, root == getRank() || outputs.empty(), "outputs on its root only");
    if (root == getRank()) {
      to = {all_outputs(plan, for_each_rank(plan, single(plan, outputs), in))};
    }
    return run(plan, [to, root, from = input(plan, in)](c10d::Backend& inner) {
      auto outputs = to;
      Tensors inputs{from};
      c10d::GatherOptions opts;
      opts.rootRank = root;
      return inner.gather(outputs, inputs, opts);
    });
  }

  WorkPtr scatter(Tensors& outputs, TensorLists& inputs,
      const c10d::ScatterOptions& opts) override {
    auto plan = begin(OpType::SCATTER, "scatter", opts.timeout);
    const auto& out = single(plan, outputs);
    const int root = rank_in(plan, opts.rootRank);
    TensorLists from;
    require(plan, root == getRank() || inputs.empty(), "inputs on its root only");
    if (root == getRank()) {
      from = {all_inputs(plan, for_each_rank(plan, single(plan, inputs), out))};
    }
    return run(plan, [from, root, to = output(plan, out)](c10d::Backend& inner) {
      Tensors outputs{to};
      auto inputs = from;
      c10d::ScatterOptions opts;
      opts.rootRank = root;
      return inner.scatter(outputs, inputs, opts);
    });
  }

  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& opts) override {
    auto plan = begin(OpType::BROADCAST, "broadcast", opts.timeout);
    const auto& tensor = single(plan, tensors);
    const int root = rank_in(plan, opts.rootRank);
    return run(plan, [root, view = output(plan, tensor)](c10d::Backend& inner) {
      Tensors tensors{view};
      c10d::BroadcastOptions opts;
      opts.rootRank = root;
      return inner.broadcast(tensors, opts);
    });
  }

  WorkPtr alltoall_base(at::Tensor& out, at::Tensor& in, std::vector<int64_t>& out_rows,
      std::vector<int64_t>& in_rows, const c10d::AllToAllOptions& opts) override {
    auto plan = begin(OpType::ALLTOALL_BASE, "all_to_all", opts.timeout);
    const auto to = output(plan, out), from = input(plan, in);
    return all_to_all(
        plan, to, from, bytes_of(plan, out, out_rows), bytes_of(plan, in, in_rows));
  }

  WorkPtr alltoall(
      Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& opts) override {
    auto plan = begin(OpType::ALLTOALL, "all_to_all", opts.timeout);
    const auto to = all_outputs(plan, for_each_rank(plan, outputs));
    const auto from = all_inputs(plan, for_each_rank(plan, inputs));
    std::vector<int64_t> to_sizes, from_sizes;
    for (const auto& one : to) to_sizes.push_back(one.numel());
    for (const auto& one : from) from_sizes.push_back(one.numel());
    const auto all = std::make_shared<at::Tensor>();
    const auto begin = [to, from, to_sizes, from_sizes, all](c10d::Backend& inner) {
      auto source = at::cat(from), target = *all = at::cat(to);
      auto target_sizes = to_sizes, source_sizes = from_sizes;
      return inner.alltoall_base(target, source, target_sizes, source_sizes);
    };
    return run(plan, begin, [to, to_sizes, all] {
      const auto parts = all->split_with_sizes(to_sizes);
      for (size_t i = 0; i < to.size(); ++i) to[i].copy_(parts[i]);
    });
  }

  // [barrier]
  WorkPtr barrier(const c10d::BarrierOptions& opts) override {
    auto plan = begin(OpType::BARRIER, "barrier", opts.timeout);
    plan.device =
        opts.device && opts.device->type() == kDevice ? *opts.device : current_device();
    plan.blocks_host = true;
    return run(plan, [](c10d::Backend& inner) { return inner.barrier(); });
  }
  // [/barrier]

  // [messages]
  WorkPtr send(Tensors& tensors, int to, int tag) override {
    auto plan = begin(OpType::SEND, "send");
    plan.lane = {OpType::SEND, rank_in(plan, to), tag};
    const auto view = input(plan, single(plan, tensors));
    return run(plan, [view, to, tag](c10d::Backend& inner) {
      Tensors tensors{view};
      return inner.send(tensors, to, tag);
    });
  }

  WorkPtr recv(Tensors& tensors, int from, int tag) override {
    auto plan = begin(OpType::RECV, "recv");
    plan.lane = {OpType::RECV, rank_in(plan, from), tag};
    const auto view = output(plan, single(plan, tensors));
    return run(plan, [view, from, tag](c10d::Backend& inner) {
      Tensors tensors{view};
      return inner.recv(tensors, from, tag);
    });
  }

  WorkPtr recvAnysource(Tensors& tensors, int tag) override {
    auto plan = begin(OpType::RECVANYSOURCE, "recv");
    plan.lane = {OpType::RECVANYSOURCE, -1, tag};
    plan.blocks_host = true; // the program asks for the sender
    const auto view = output(plan, single(plan, tensors));
    return run(plan, [view, tag](c10d::Backend& inner) {
      Tensors tensors{view};
      return inner.recvAnysource(tensors, tag);
    });
  }
  // [/messages]

  WorkPtr allreduce_coalesced(
      Tensors& tensors, const c10d::AllreduceCoalescedOptions& opts) override {
    return together(tensors.size(), tensors.size(), [&](size_t i) {
      Tensors one{tensors[i]};
      allreduce(one, opts);
    });
  }
  WorkPtr allgather_into_tensor_coalesced(
      Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions& opts) override {
    return together(outputs.size(), inputs.size(),
        [&](size_t i) { _allgather_base(outputs[i], inputs[i], opts); });
  }
  WorkPtr reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
      const c10d::ReduceScatterOptions& opts) override {
    return together(outputs.size(), inputs.size(),
        [&](size_t i) { _reduce_scatter_base(outputs[i], inputs[i], opts); });
  }

 private:
  static constexpr auto kDevice = c10::DeviceType::PrivateUse1;

  static Plan begin(
      OpType type, const char* name, milliseconds timeout = kUnsetTimeout) {
    Plan plan;
    plan.type = type;
    plan.name = name;
    plan.timeout = timeout;
    return plan;
  }

  // Launches the call, or adds it to those that this thread coalesces.
  WorkPtr run(Plan& plan, std::function<WorkPtr(c10d::Backend&)> begin,
      std::function<void()> finish = nullptr) {
    plan.pieces.push_back({std::move(begin), std::move(finish)});
    const auto entry = plans().find(this);
    if (entry == plans().end()) return group_->launch(std::move(plan));
    auto& all = entry->second;
    require(plan, !all.device || all.device == plan.device, "tensors of one device");
    all.device = plan.device;
    all.timeout = std::max(all.timeout, plan.timeout);
    all.pieces.push_back(std::move(plan.pieces[0]));
    all.inputs.insert(all.inputs.end(), plan.inputs.begin(), plan.inputs.end());
    all.outputs.insert(all.outputs.end(), plan.outputs.begin(), plan.outputs.end());
    return nullptr; // endCoalescing() returns the work
  }

  template <class CallOne>
  WorkPtr together(size_t outputs, size_t inputs, const CallOne& call) {
    const bool inside = plans().count(this); // the program coalesces, too
    if (!inside) startCoalescing();
    try {
      require(plans()[this], outputs == inputs, "as many outputs as inputs");
      for (size_t i = 0; i < inputs; ++i) call(i);
    } catch (...) {
      plans().erase(this);
      throw;
    }
    return inside ? nullptr : endCoalescing();
  }

  // [views]
  // The memory of a tensor as a flat tensor of the CPU, which owns nothing.
  static at::Tensor flat(const at::Tensor& tensor, As as) {
    const auto dtype =
        as == As::bytes ? at::kByte : c10::toRealValueType(tensor.scalar_type());
    const auto count = static_cast<int64_t>(tensor.nbytes() / c10::elementSize(dtype));
    return at::from_blob(tensor.data_ptr(), {count}, dtype);
  }
  at::Tensor input(Plan& plan, const at::Tensor& tensor, As as = As::bytes) const {
    check(plan, tensor);
    plan.inputs.push_back(tensor);
    return flat(tensor, as);
  }
  at::Tensor output(Plan& plan, const at::Tensor& tensor, As as = As::bytes) const {
    check(plan, tensor);
    plan.outputs.push_back(tensor);
    return flat(tensor, as);
  }
  Tensors all_inputs(Plan& plan, const Tensors& tensors, As as = As::bytes) const {
    Tensors views;
    for (const auto& tensor : tensors) views.push_back(input(plan, tensor, as));
    return views;
  }
  Tensors all_outputs(Plan& plan, const Tensors& tensors) const {
    Tensors views;
    for (const auto& tensor : tensors) views.push_back(output(plan, tensor));
    return views;
  }
  // [/views]

  // [checks]
  template <class... Text>
  static void require(const Plan& plan, bool condition, const Text&... text) {
    TORCH_CHECK_VALUE(condition, "Backend simccl: ", plan.name, " takes ", text...);
  }
  static void check(Plan& plan, const at::Tensor& tensor) {
    require(plan, tensor.defined() && tensor.device().type() == kDevice,
        "tensors of the device sim");
    require(plan,
        tensor.layout() == at::kStrided && tensor.is_contiguous() &&
            !tensor.is_conj() && !tensor.is_neg(),
        "dense, contiguous tensors; call contiguous() before");
    require(plan, !plan.device || *plan.device == tensor.device(),
        "tensors of one device, got some of ", tensor.device(), " and others");
    plan.device = tensor.device();
    for (const auto* list : {&plan.inputs, &plan.outputs}) {
      require(plan, list->empty() || list->front().dtype() == tensor.dtype(),
          "tensors of one dtype");
    }
  }
  template <class T>
  static T& single(const Plan& plan, std::vector<T>& list) {
    require(plan, list.size() == 1, "one tensor of each rank, got ", list.size());
    return list[0];
  }
  const Tensors& for_each_rank(
      const Plan& plan, const Tensors& list, const at::Tensor& like = {}) const {
    require(plan, static_cast<int>(list.size()) == getSize(), getSize(),
        " tensors, one for each rank, got ", list.size());
    for (const auto& one : list) {
      require(
          plan, !like.defined() || one.numel() == like.numel(), "tensors of one size");
    }
    return list;
  }
  int rank_in(const Plan& plan, int64_t rank) const {
    require(plan, rank >= 0 && rank < getSize(), "a rank of a group of ", getSize(),
        ", got ", rank);
    return static_cast<int>(rank);
  }
  // What all inner backends can reduce. They add for an average, which is divided here.
  static ReduceOp checked(
      const Plan& plan, const ReduceOp& op, const at::Tensor& tensor) {
    const auto dtype = tensor.scalar_type();
    const bool adds = op == ReduceOp::SUM || op == ReduceOp::AVG;
    const bool real = at::isFloatingType(dtype) && c10::elementSize(dtype) > 1;
    const bool whole = at::isIntegralType(dtype, /*includeBool=*/false) &&
        dtype != at::kShort && !c10::isBarebonesUnsignedType(dtype);
    const bool bits =
        op == ReduceOp::BAND || op == ReduceOp::BOR || op == ReduceOp::BXOR;
    const bool fits = at::isComplexType(dtype) ? adds && dtype != at::kComplexHalf
        : whole                                ? op != ReduceOp::AVG
                                               : real && !bits;
    require(plan, fits && op != ReduceOp::PREMUL_SUM,
        "other operations for tensors of ", dtype);
    return op == ReduceOp::AVG ? ReduceOp(ReduceOp::SUM) : op;
  }
  std::vector<int64_t> bytes_of(
      const Plan& plan, const at::Tensor& tensor, std::vector<int64_t> rows) const {
    const int64_t total = tensor.dim() == 0 ? 1 : tensor.size(0);
    if (rows.empty()) rows.assign(getSize(), total / getSize());
    const auto sum = std::accumulate(rows.begin(), rows.end(), int64_t{0});
    require(plan, static_cast<int>(rows.size()) == getSize() && sum == total, getSize(),
        " pieces that are all rows, got ", at::IntArrayRef(rows), " of ", total);
    for (auto& one : rows) {
      one *= total == 0 ? 0 : static_cast<int64_t>(tensor.nbytes()) / total;
    }
    return rows;
  }
  // [/checks]

  std::function<void()> average(const ReduceOp& op, const at::Tensor& view) const {
    if (op != ReduceOp::AVG) return nullptr;
    return [view, size = getSize()] { view.div_(size); };
  }

  WorkPtr reduce_scatter(Plan& plan, const at::Tensor& out, const Tensors& inputs,
      const c10d::ReduceScatterOptions& opts) {
    const auto op = checked(plan, opts.reduceOp, out);
    const auto to = output(plan, out, As::numbers);
    const auto from = all_inputs(plan, inputs, As::numbers);
    return run(
        plan,
        [to, from, op](c10d::Backend& inner) {
          auto target = to, source = from.size() == 1 ? from[0] : at::cat(from);
          c10d::ReduceScatterOptions opts;
          opts.reduceOp = op;
          return inner._reduce_scatter_base(target, source, opts);
        },
        average(opts.reduceOp, to));
  }

  WorkPtr all_to_all(Plan& plan, const at::Tensor& to, const at::Tensor& from,
      const std::vector<int64_t>& to_bytes, const std::vector<int64_t>& from_bytes) {
    return run(plan, [=](c10d::Backend& inner) {
      auto target = to, source = from;
      auto target_sizes = to_bytes, source_sizes = from_bytes;
      return inner.alltoall_base(target, source, target_sizes, source_sizes);
    });
  }

  at::Device current_device() const {
    return bound_device_id_.value_or(c10::impl::VirtualGuardImpl(kDevice).getDevice());
  }

  // What this thread coalesces, in each group.
  static std::map<const BackendSimccl*, Plan>& plans() {
    static thread_local std::map<const BackendSimccl*, Plan> plans;
    return plans;
  }

  const StorePtr store_; // of the inner backend, too
  const std::shared_ptr<StreamGroup> group_;
};

} // namespace stream_collectives
