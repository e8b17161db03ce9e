#pragma once

#include "options.hpp"

namespace stream_collectives {

// A call of the library that moves the data, which here is a backend for the CPU. It has
// the addresses and sizes that a call of NCCL has, and owns no memory.
class LibraryCall {
 public:
  explicit LibraryCall(const frame::Arguments& call)
      : note_(call.note),
        in_(call.in.begin(), call.in.end()),
        out_(call.out.begin(), call.out.end()),
        source_(call.source) {}

  // Whether all libraries can reduce these numbers. They add for an average.
  static bool can_reduce(const frame::Note& note) {
    using enum at::ScalarType;
    const auto type = static_cast<at::ScalarType>(note.dtype);
    static constexpr std::array kTypes{Float, Double, Half, BFloat16, Int, Long, Char,
        Byte, ComplexFloat, ComplexDouble};
    const bool adds = op(note) == c10d::ReduceOp::SUM;
    const bool divides = note.op == frame::Op::avg;
    return note.op == frame::Op::none ||
        (std::ranges::count(kTypes, type) && (adds || !at::isComplexType(type)) &&
            !(divides && at::isIntegralType(type, /*includeBool=*/true)));
  }

  // [library]
  WorkPtr begin(c10d::Backend& library) {
    const auto from = views(in_);
    auto to = views(out_);
    auto inputs = from;
    std::vector<Tensors> to_lists, from_lists;
    if (!to.empty()) to_lists = {to};
    if (!from.empty()) from_lists = {from};
    switch (note_.kind) {
      case Kind::all_reduce:
        to[0].copy_(from[0]);
        return library.allreduce(to, with_op<c10d::AllreduceOptions>());
      case Kind::reduce: { // gloo writes to the tensors of all ranks
        all_ = from[0].clone();
        Tensors sum{all_};
        return library.reduce(sum, with_root(with_op<c10d::ReduceOptions>()));
      }
      case Kind::reduce_scatter:
        all_ = at::cat(from);
        return library._reduce_scatter_base(
            to[0], all_, with_op<c10d::ReduceScatterOptions>());
      case Kind::broadcast:
        return library.broadcast(
            to.empty() ? inputs : to, with_root(c10d::BroadcastOptions()));
      case Kind::all_gather:
        return library.allgather(to_lists, inputs);
      case Kind::gather:
        return library.gather(to_lists, inputs, with_root(c10d::GatherOptions()));
      case Kind::scatter:
        return library.scatter(to, from_lists, with_root(c10d::ScatterOptions()));
      case Kind::all_to_all: {
        all_ = at::cat(to);
        auto all = at::cat(from);
        auto to_sizes = sizes(out_), from_sizes = sizes(in_);
        return library.alltoall_base(all_, all, to_sizes, from_sizes);
      }
      case Kind::send:
        return library.send(inputs, note_.root, tag());
      case Kind::receive:
        return note_.root < 0 ? library.recvAnysource(to, tag())
                              : library.recv(to, note_.root, tag());
      default:
        return library.barrier();
    }
  }

  // What the library leaves to do.
  void end(const WorkPtr& work, int ranks) {
    if (work) work->wait(); // none: it has ended
    auto to = views(out_);
    if (note_.kind == Kind::reduce && !to.empty()) to[0].copy_(all_);
    if (note_.kind == Kind::all_to_all) {
      const auto parts = all_.split_with_sizes(sizes(out_));
      for (size_t i = 0; i < to.size(); ++i) to[i].copy_(parts[i]);
    }
    if (note_.op == frame::Op::avg && !to.empty()) to[0].div_(ranks);
    if (note_.kind == Kind::receive && note_.root < 0)
      source_->store(work->sourceRank());
  }
  // [/library]

 private:
  // Flat tensors of the CPU at these addresses: numbers to reduce, or else bytes.
  Tensors views(const std::vector<frame::Bytes>& pieces) const {
    const auto type = note_.op == frame::Op::none
        ? at::kByte
        : c10::toRealValueType(static_cast<at::ScalarType>(note_.dtype));
    Tensors views;
    for (const auto piece : pieces) {
      const auto count = static_cast<int64_t>(piece.size() / c10::elementSize(type));
      views.push_back(at::from_blob(piece.data(), {count}, type));
    }
    return views;
  }
  static std::vector<int64_t> sizes(const std::vector<frame::Bytes>& pieces) {
    std::vector<int64_t> sizes;
    for (const auto piece : pieces) sizes.push_back(static_cast<int64_t>(piece.size()));
    return sizes;
  }
  static c10d::ReduceOp::RedOpType op(const frame::Note& note) {
    const bool adds = note.op == frame::Op::avg || note.op == frame::Op::premul_sum;
    return adds ? c10d::ReduceOp::SUM : static_cast<c10d::ReduceOp::RedOpType>(note.op);
  }
  template <class Options>
  Options with_op() const {
    Options options;
    options.reduceOp = op(note_);
    return options;
  }
  template <class Options>
  Options with_root(Options options) const {
    options.rootRank = note_.root;
    return options;
  }
  int tag() const { return static_cast<int>(note_.tag); }

  frame::Note note_;
  std::vector<frame::Bytes> in_, out_;
  std::shared_ptr<std::atomic<int>> source_;
  at::Tensor all_; // memory of its own: many pieces in one
};

} // namespace stream_collectives
