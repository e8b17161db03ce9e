#include "call.hpp"

#include <numeric>

#include <ATen/MemoryOverlap.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty_like.h>

namespace shm_collectives {

namespace {

// The memory of the tensor is its elements in order, as they are.
bool is_plain(const at::Tensor& tensor) {
  return tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg();
}

at::Tensor plain_copy(const at::Tensor& tensor) {
  return tensor.resolve_conj().resolve_neg().contiguous();
}

// [overlap]
// Two elements may be at one place. From the smallest stride up, each one must
// step over everything that the smaller ones reach.
bool may_overlap(const at::Tensor& tensor) {
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

bool may_overlap(const at::Tensor& one, const at::Tensor& other) {
  const auto status = at::get_overlap_status(one, other);
  return one.numel() > 0 && other.numel() > 0 &&
      (status == at::MemOverlapStatus::Full || status == at::MemOverlapStatus::Partial);
}
// [/overlap]

} // namespace

// [check]
void Call::check(const at::Tensor& tensor) {
  require(tensor.defined(), " got an undefined tensor");
  require(tensor.device().is_cpu(), " takes tensors of the CPU, got one of ", tensor.device());
  // A sum of sparse tensors is built from the dense ones.
  const bool sum = note.kind == Kind::all_reduce && note.op == Op::sum && tensor.is_sparse();
  require(sum || (tensor.layout() == at::kStrided && !tensor.is_quantized()),
      " takes dense tensors, got one of layout ", tensor.layout(), " and dtype ",
      tensor.scalar_type());
  const auto dtype = static_cast<int8_t>(tensor.scalar_type());
  require(note.dtype == -1 || note.dtype == dtype, " takes tensors of one dtype, got ",
      static_cast<at::ScalarType>(note.dtype), " and ", tensor.scalar_type());
  note.dtype = dtype;
}

void Call::check_sizes(const Pieces& pieces, const char* what, const Bytes* one) const {
  const auto count = static_cast<int>(pieces.size());
  require(count == ranks_, " takes ", ranks_, " ", what, " tensors, got ", count);
  for (const Bytes piece : pieces) {
    require(one == nullptr || piece.size() == one->size(), " takes tensors of one size, got ",
        piece.size(), " and ", one ? one->size() : 0, " bytes");
  }
}
// [/check]

// [tensors]
Bytes Call::keep(const at::Tensor& tensor) {
  kept_.push_back(tensor);
  return {static_cast<std::byte*>(tensor.data_ptr()), static_cast<size_t>(tensor.nbytes())};
}

Bytes Call::input(const at::Tensor& tensor) {
  check(tensor);
  return keep(is_plain(tensor) ? tensor : plain_copy(tensor));
}

Bytes Call::output(const at::Tensor& tensor, bool in_place) {
  check(tensor);
  if (tensor.is_sparse()) {
    results.push_back(tensor);
    copies_.emplace_back(tensor, tensor.to_dense());
    return keep(copies_.back().second);
  }
  require(!may_overlap(tensor),
      " cannot write to a tensor whose elements overlap in memory; clone() it before");
  for (const auto& other : results) {
    require(!may_overlap(tensor, other), " cannot write to two tensors that overlap in memory");
  }
  // [layouts]
  results.push_back(tensor);
  if (is_plain(tensor)) return keep(tensor);
  copies_.emplace_back(tensor, in_place ? plain_copy(tensor)
      : at::empty_like(tensor, {}, at::MemoryFormat::Contiguous));
  return keep(copies_.back().second);
  // [/layouts]
}

void Call::finish() const {
  if (copies_.empty()) return;
  // Whoever calls this may be a thread that knows nothing of autograd.
  const at::AutoDispatchBelowADInplaceOrView no_autograd;
  for (const auto& [to, from] : copies_) {
    to.copy_(to.is_sparse() ? from.to_sparse(to.sparse_dim()) : from);
  }
}
// [/tensors]

// [pieces]
Pieces Call::inputs(const Tensors& tensors, const Bytes* one) {
  Pieces pieces;
  for (const auto& tensor : tensors) pieces.push_back(input(tensor));
  check_sizes(pieces, "input", one);
  return pieces;
}

Pieces Call::outputs(const Tensors& tensors, const Bytes* one) {
  Pieces pieces;
  for (const auto& tensor : tensors) pieces.push_back(output(tensor));
  check_sizes(pieces, "output", one);
  return pieces;
}

Pieces Call::pieces(Bytes all, Bytes one) const {
  require(all.size() == one.size() * ranks_, " takes one tensor that is ", ranks_,
      " times as large as the other, got ", all.size(), " and ", one.size(), " bytes");
  Pieces pieces;
  for (int rank = 0; rank < ranks_; ++rank) {
    pieces.push_back(all.subspan(rank * one.size(), one.size()));
  }
  return pieces;
}

Pieces Call::rows(const at::Tensor& tensor, Bytes all, std::vector<int64_t> numbers) const {
  const int64_t total = tensor.dim() == 0 ? 1 : tensor.size(0);
  if (numbers.empty()) numbers.assign(ranks_, total / ranks_);
  require(static_cast<int>(numbers.size()) == ranks_ && std::ranges::min(numbers) >= 0 &&
      std::accumulate(numbers.begin(), numbers.end(), int64_t{0}) == total, " cannot split ",
      total, " rows into ", ranks_, " pieces of ", at::IntArrayRef(numbers), " rows");
  const size_t row = total == 0 ? 0 : all.size() / total;
  Pieces pieces;
  for (const int64_t number : numbers) {
    pieces.push_back(all.first(number * row));
    all = all.subspan(number * row);
  }
  return pieces;
}
// [/pieces]

} // namespace shm_collectives
