#pragma once

#include "options.hpp"

namespace stream_collectives {

// A call of the library that moves the data, which here is a backend for the CPU. It has
// the addresses and sizes that a call of NCCL has, and owns none of the program's memory.
class LibraryCall {
 public:
  explicit LibraryCall(const frame::Arguments& call)
      : note_(call.note),
        timeout_(timeout_of_library(call.timeout)),
        in_(call.in.begin(), call.in.end()),
        out_(call.out.begin(), call.out.end()),
        source_(call.source) {}

  // Whether every library can reduce these numbers. For an average, it adds quotients.
  static bool can_reduce(const frame::Note& note) {
    using enum at::ScalarType;
    const auto type = static_cast<at::ScalarType>(note.dtype);
    static constexpr std::array kReal{Float, Double, Half, BFloat16};
    static constexpr std::array kWhole{Int, Long, Char, Byte};
    if (note.op == frame::Op::none || std::ranges::count(kReal, type)) return true;
    if (std::ranges::count(kWhole, type)) return note.op != frame::Op::avg;
    return (type == ComplexFloat || type == ComplexDouble) && op(note) == op({});
  }

  // [library]
  WorkPtr begin(c10d::Backend& library) {
    Tensors from = views(in_), to = views(out_);
    if (note_.op == frame::Op::avg) { // gloo would divide the sum, which may overflow
      for (auto& tensor : from) tensor = tensor.div(library.getSize());
    }
    std::vector<Tensors> from_lists, to_lists;
    if (!from.empty()) from_lists = {from};
    if (!to.empty()) to_lists = {to};
    if (is_own(library.getRank())) return copy(from, to);
    switch (note_.kind) {
      case Kind::all_reduce:
        to[0].copy_(from[0]);
        return library.allreduce(to, options<c10d::AllreduceOptions>());
      case Kind::reduce:
        from[0] = all_ = from[0].clone(); // gloo writes to the tensors of all ranks
        return library.reduce(from, options<c10d::ReduceOptions>());
      case Kind::reduce_scatter:
        return library.reduce_scatter(
            to, from_lists, options<c10d::ReduceScatterOptions>());
      case Kind::broadcast:
        return library.broadcast(
            to.empty() ? from : to, options<c10d::BroadcastOptions>());
      case Kind::all_gather:
        return library.allgather(to_lists, from, options<c10d::AllgatherOptions>());
      case Kind::gather:
        return library.gather(to_lists, from, options<c10d::GatherOptions>());
      case Kind::scatter:
        return library.scatter(to, from_lists, options<c10d::ScatterOptions>());
      case Kind::all_to_all: {
        auto all = at::cat(from), target = all_ = at::cat(to);
        auto target_sizes = sizes(out_), sizes = this->sizes(in_);
        return library.alltoall_base(
            target, all, target_sizes, sizes, options<c10d::AllToAllOptions>());
      }
      case Kind::send:
        return library.send(from, note_.root, tag());
      case Kind::receive:
        return note_.root < 0 ? library.recvAnysource(to, tag())
                              : library.recv(to, note_.root, tag());
      default:
        return library.barrier(options<c10d::BarrierOptions>());
    }
  }

  // What the library leaves to do.
  void end(const WorkPtr& work) {
    if (work) work->wait(); // none: it has ended
    auto to = views(out_);
    if (all_.defined() && !to.empty()) {
      const auto parts = all_.split_with_sizes(sizes(out_, to[0].element_size()));
      for (size_t i = 0; i < to.size(); ++i) to[i].copy_(parts[i]);
    }
    if (note_.kind == Kind::receive && note_.root < 0)
      source_->store(work->sourceRank());
  }
  // [/library]

 private:
  using Pieces = std::vector<frame::Bytes>;

  // A message of the rank to itself. Its send has nothing to do; its receive has the input.
  bool is_own(int rank) const { return is_message(note_.kind) && note_.root == rank; }
  static WorkPtr copy(const Tensors& from, const Tensors& to) {
    if (!to.empty()) to[0].copy_(from[0]);
    return nullptr;
  }

  // Flat tensors of the CPU at these addresses: numbers to reduce, or else bytes.
  Tensors views(const Pieces& pieces) const {
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
  static std::vector<int64_t> sizes(const Pieces& pieces, size_t element = 1) {
    std::vector<int64_t> sizes;
    for (const auto piece : pieces) sizes.push_back(piece.size() / element);
    return sizes;
  }
  static c10d::ReduceOp::RedOpType op(const frame::Note& note) {
    const bool other = note.op > frame::Op::avg && note.op < frame::Op::premul_sum;
    return static_cast<c10d::ReduceOp::RedOpType>(other ? note.op : frame::Op::sum);
  }
  template <class Options>
  Options options() const {
    Options options;
    options.timeout = timeout_;
    if constexpr (requires { options.rootRank; }) options.rootRank = note_.root;
    if constexpr (requires { options.reduceOp; }) options.reduceOp = op(note_);
    return options;
  }
  int tag() const { return static_cast<int>(note_.tag); }

  frame::Note note_;
  milliseconds timeout_;
  Pieces in_, out_;
  std::shared_ptr<std::atomic<int>> source_;
  at::Tensor all_; // memory of its own, for all pieces
};

} // namespace stream_collectives
