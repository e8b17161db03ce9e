#pragma once

#include <ATen/EmptyTensor.h>
#include <ATen/MemoryOverlap.h>
#include <c10/util/SmallVector.h>
#include <c10/util/safe_numerics.h>

#include "reductions.hpp"
#include "sparse.hpp"
#include "transport.hpp"

namespace frame {

using Tensors = std::vector<at::Tensor>;
using PieceList = c10::SmallVector<Bytes, 8>; // so many without an allocation

// A program can shrink the storage below a tensor, as FSDP does between uses.
inline bool has_memory(const at::Tensor& tensor) {
  return tensor.numel() == 0 ||
      at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(),
          tensor.element_size(), tensor.storage_offset()) <= tensor.storage().nbytes();
}

// The memory of the tensor is its elements in order, as they are.
inline bool is_plain(const at::Tensor& tensor) {
  return tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg();
}

inline at::Tensor plain_copy(const at::Tensor& tensor) {
  return tensor.resolve_conj().resolve_neg().contiguous();
}

// Two elements may be at one place. From the smallest stride up, each one must step
// over everything that the smaller ones reach.
inline bool may_overlap(const at::Tensor& tensor) {
  if (tensor.is_non_overlapping_and_dense() || tensor.numel() == 0) return false;
  std::vector<std::pair<int64_t, int64_t>> dimensions;
  for (int64_t d = 0; d < tensor.dim(); ++d) {
    if (tensor.size(d) > 1) dimensions.emplace_back(tensor.stride(d), tensor.size(d));
  }
  std::ranges::sort(dimensions);
  int64_t reach = 0;
  for (const auto& [stride, size] : dimensions) {
    if (stride <= reach) return true;
    reach += stride * (size - 1);
  }
  return false;
}

inline bool may_overlap(const at::Tensor& one, const at::Tensor& other) {
  if (one.numel() == 0 || other.numel() == 0) return false;
  const auto status = at::get_overlap_status(one, other);
  return status == at::MemOverlapStatus::Full ||
      status == at::MemOverlapStatus::Partial;
}

// The arguments of one call: its tensors as bytes, and how long it may take. Arguments
// that cannot be used are refused here, before any other rank notices.
class Arguments {
 public:
  // `backend` is used only until the operation begins. The tensors are of one device of
  // the given type.
  Arguments(Kind kind, milliseconds timeout, std::string_view backend, int ranks,
      at::DeviceType device = at::kCPU)
      : timeout(timeout), device(device), backend_(backend), ranks_(ranks) {
    note.kind = kind;
  }

  // The elements of a tensor one after another, whatever its strides are. Those of an
  // output are written back by finish().
  Bytes input(const at::Tensor& tensor) {
    check(tensor);
    return keep(is_plain(tensor) ? tensor : plain_copy(tensor));
  }

  // [output]
  Bytes output(const at::Tensor& tensor, bool in_place = false) {
    check(tensor);
    require(!may_overlap(tensor),
        " cannot write to a tensor whose elements overlap in "
        "memory; clone() it before");
    for (const auto& other : results) {
      require(!may_overlap(tensor, other),
          " cannot write to two tensors that overlap in memory");
    }
    results.push_back(tensor);
    if (is_plain(tensor)) return keep(tensor);
    copies_.emplace_back(tensor,
        in_place ? plain_copy(tensor)
                 : at::empty_like(tensor, {}, at::MemoryFormat::Contiguous));
    return keep(copies_.back().second);
  }
  // [/output]

  // A sparse tensor, which becomes the sum of those of all ranks.
  Bytes sparse(const at::Tensor& tensor) {
    check(tensor);
    results.push_back(tensor);
    for (const int64_t size : tensor.sizes()) add_to_tag(size);
    add_to_tag(1 + tensor.sparse_dim());
    const auto count = static_cast<uint64_t>(tensor.numel());
    const uint64_t size = tensor.element_size();
    // A dense tensor of these sizes may have more bytes than can be counted.
    if (c10::mul_overflows(count, size, &note.bytes)) note.bytes = UINT64_MAX;
    packed_ = std::make_shared<Blobs>(ranks_);
    return keep(packed(tensor));
  }

  // [finish]
  // Writes the results to where they belong, hidden from autograd: any thread may call
  // this, also one that does not know of the program's no_grad().
  void finish() const {
    if (copies_.empty() && !packed_) return;
    const at::AutoDispatchBelowADInplaceOrView no_autograd;
    for (const auto& [to, from] : copies_) to.copy_(from);
    if (packed_) results[0].copy_(sum_of(*packed_, results[0]));
  }
  // [/finish]

  // One tensor for each rank, each as large as `one`, if that is given.
  PieceList inputs(const Tensors& tensors, const Bytes* one = nullptr) {
    PieceList pieces;
    for (const auto& tensor : tensors) pieces.push_back(input(tensor));
    return checked(std::move(pieces), "input", one);
  }
  PieceList outputs(const Tensors& tensors, const Bytes* one = nullptr) {
    PieceList pieces;
    for (const auto& tensor : tensors) pieces.push_back(output(tensor));
    return checked(std::move(pieces), "output", one);
  }

  // One tensor for all ranks, with a piece as large as `one` for each.
  PieceList pieces(Bytes all, Bytes one) const {
    require(all.size() == one.size() * ranks_, " takes one tensor that is ", ranks_,
        " times as large as the other, got ", all.size(), " and ", one.size(),
        " bytes");
    PieceList pieces;
    for (int rank = 0; rank < ranks_; ++rank) {
      pieces.push_back(all.subspan(rank * one.size(), one.size()));
    }
    return pieces;
  }

  // The rows of a tensor that belong to each rank; no numbers: equally many.
  PieceList rows(
      const at::Tensor& tensor, Bytes all, std::vector<int64_t> numbers) const {
    const int64_t total = tensor.dim() == 0 ? 1 : tensor.size(0);
    if (numbers.empty()) numbers.assign(ranks_, total / ranks_);
    require(splits(total, numbers, ranks_), " cannot split ", total, " rows into ",
        ranks_, " pieces of ", at::IntArrayRef(numbers), " rows");
    const size_t row = total == 0 ? 0 : all.size() / total;
    PieceList pieces;
    for (const int64_t number : numbers) {
      pieces.push_back(all.first(number * row));
      all = all.subspan(number * row);
    }
    return pieces;
  }

  // For the note: the size of the data, or of each piece, and the root, or the other rank.
  void set_size(Bytes data, int root = -1) {
    note.bytes = data.size();
    note.root = root;
  }

  // The same of a list: the size of each piece; if they differ, their sum and a digest.
  void set_sizes(Pieces pieces) {
    bool same = true;
    note.bytes = 0;
    for (const Bytes piece : pieces) {
      note.bytes += piece.size();
      same = same && piece.size() == pieces[0].size();
      add_to_tag(piece.size());
    }
    if (!same) return;
    note.tag = 0;
    note.bytes = pieces[0].size();
  }

  // The same of an all_to_all, where each pair of ranks has a size of its own.
  void set_even() {
    const auto differs = [this](Bytes piece) { return piece.size() != in[0].size(); };
    note.even = std::ranges::none_of(in, differs) && std::ranges::none_of(out, differs);
  }

  template <class T>
  T& single(std::vector<T>& list, const char* what) const {
    require(list.size() == 1, " takes one ", what, ", got ", list.size());
    return list[0];
  }
  int rank(int64_t rank, const char* what) const {
    require(rank >= 0 && rank < ranks_, ": ", what, " ", rank,
        " is not a rank of a group of ", ranks_);
    return static_cast<int>(rank);
  }
  template <class... Text>
  void require(bool condition, const Text&... text) const {
    if (!condition) refuse(text...);
  }

  // Copies inputs that lie partly in an output, which a transport may write first. Only a
  // piece that is both stays, and those of a device, whose libraries define this.
  void keep_inputs() {
    if (!device.is_cpu()) return;
    for (Bytes& piece : in) {
      const auto partly = [&](Bytes other) {
        const bool apart =
            end_of(piece) <= other.data() || end_of(other) <= piece.data();
        const bool same = piece.data() == other.data() && piece.size() == other.size();
        return !apart && !same;
      };
      if (std::ranges::none_of(out, partly)) continue;
      const auto size = static_cast<int64_t>(piece.size());
      const Bytes copied = keep(at::empty(size, at::kByte));
      copy(copied, piece);
      piece = copied;
    }
  }

  // The operation of these arguments, which must stay where they are; `owner` keeps the
  // tensors.
  Operation operation(std::shared_ptr<const void> owner = nullptr) const {
    Operation operation{
        note, in, out, nullptr, nullptr, packed_.get(), source, std::move(owner)};
    if (reduction) {
      operation.reduce = std::cref(*reduction);
      operation.combine = [this](
                              Bytes to, Pieces from) { reduction->combine(to, from); };
    }
    return operation;
  }

  Note note;
  PieceList in, out;
  std::optional<Reduction> reduction;
  std::shared_ptr<std::atomic<int>> source; // of a receive
  milliseconds timeout; // from the first step on
  c10::SmallVector<at::Tensor, 2> results; // the outputs
  bool name_all = true; // in errors: all late ranks, or the first
  at::Device device; // of the tensors; without an index, if there are none

 private:
  template <class... Text>
  [[noreturn]] void refuse(const Text&... text) const {
    C10_THROW_ERROR(
        ValueError, c10::str("Backend ", backend_, ": ", name(note.kind), text...));
  }

  // Texts that take time are made only for an error: short messages come here, too.
  void check(const at::Tensor& tensor) {
    require(tensor.defined(), " got an undefined tensor");
    if (tensor.device().type() != device.type()) {
      refuse(" takes tensors of ",
          device.is_cpu() ? "the CPU" : "the device " + device.str(), ", got one of ",
          tensor.device());
    }
    if (!device.has_index()) device = tensor.device();
    require(tensor.device() == device, " takes tensors of one device, got some of ",
        device, " and ", tensor.device());
    const bool sum =
        device.is_cpu() && note.kind == Kind::all_reduce && note.op == Op::sum;
    const bool dense = tensor.layout() == at::kStrided && !tensor.is_quantized();
    require(dense || (sum && tensor.is_sparse()),
        " takes dense tensors, got one of layout ", tensor.layout(), " and dtype ",
        tensor.scalar_type());
    if (dense && !has_memory(tensor)) {
      refuse(" got a tensor whose storage was resized to ", tensor.storage().nbytes(),
          " bytes, too few for its elements");
    }
    const auto dtype = static_cast<Dtype>(tensor.scalar_type());
    if (note.dtype != Dtype::none && note.dtype != dtype) {
      refuse(
          " takes tensors of one dtype, got ", name(note.dtype), " and ", name(dtype));
    }
    note.dtype = dtype;
  }

  // The tag tells sequences of numbers apart: the factor is odd, and larger than the
  // numbers.
  void add_to_tag(uint64_t number) {
    note.tag = static_cast<uint64_t>(note.tag) * 0x9E3779B97F4A7C15 + number;
  }

  // Whether these numbers, one for each rank, are parts of the total. A sum of numbers
  // that a program gives could overflow, and come out right.
  static bool splits(int64_t total, at::IntArrayRef numbers, int ranks) {
    int64_t left = total;
    for (const int64_t number : numbers) {
      if (number < 0 || number > left) return false;
      left -= number;
    }
    return left == 0 && static_cast<int64_t>(numbers.size()) == ranks;
  }

  PieceList checked(PieceList pieces, const char* what, const Bytes* one) const {
    const auto count = static_cast<int>(pieces.size());
    require(count == ranks_, " takes ", ranks_, " ", what, " tensors, got ", count);
    for (const Bytes piece : pieces) {
      require(one == nullptr || piece.size() == one->size(),
          " takes tensors of one size, got ", piece.size(), " and ",
          one ? one->size() : 0, " bytes");
    }
    return pieces;
  }

  static const std::byte* end_of(Bytes piece) { return piece.data() + piece.size(); }

  Bytes keep(const at::Tensor& tensor) {
    kept_.push_back(tensor);
    auto* const data = static_cast<std::byte*>(tensor.data_ptr());
    return {data, static_cast<size_t>(tensor.nbytes())};
  }

  std::string_view backend_;
  int ranks_;
  c10::SmallVector<at::Tensor, 4> kept_; // used until the end
  std::vector<std::pair<at::Tensor, at::Tensor>> copies_; // to, from
  std::shared_ptr<Blobs> packed_; // of all ranks, if the tensor is sparse
};

// The input, or a copy if it shares memory with an output: a transport may write the
// piece of one rank before it has read that of another.
inline at::Tensor apart(const at::Tensor& input, at::TensorList outputs) {
  const auto shares = [&](const auto& output) {
    return input.has_storage() && output.has_storage() && input.is_alias_of(output);
  };
  return std::ranges::any_of(outputs, shares) ? input.clone() : input;
}
inline Tensors apart(Tensors inputs, at::TensorList outputs) {
  for (auto& input : inputs) input = apart(input, outputs);
  return inputs;
}

} // namespace frame
