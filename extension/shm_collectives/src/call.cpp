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
  return one.numel() > 0 && other.numel() > 0 && (status == at::MemOverlapStatus::Full ||
      status == at::MemOverlapStatus::Partial);
}
// [/overlap]

} // namespace

// [check]
void Call::check(const at::Tensor& tensor) {
  require(tensor.defined(), " got an undefined tensor");
  require(tensor.device().is_cpu(), " takes tensors of the CPU, got one of ", tensor.device());
  require(tensor.layout() == at::kStrided && !tensor.is_quantized(),
      " takes dense tensors, got one of layout ", tensor.layout(), " and dtype ",
      tensor.scalar_type());
  const auto dtype = static_cast<int8_t>(tensor.scalar_type());
  require(note.dtype == -1 || note.dtype == dtype, " takes tensors of one dtype, got ",
      static_cast<at::ScalarType>(note.dtype), " and ", tensor.scalar_type());
  note.dtype = dtype;
}

void Call::check_output(const at::Tensor& tensor) const {
  require(!may_overlap(tensor), " cannot write to a tensor whose elements overlap in memory; "
      "clone() it before");
  for (const auto& other : results) {
    require(!may_overlap(tensor, other), " cannot write to two tensors that overlap in memory");
  }
}
// [/check]

// [tensors]
Bytes Call::keep(const at::Tensor& tensor) {
  kept_.push_back(tensor);
  return {
      static_cast<std::byte*>(tensor.data_ptr()), static_cast<size_t>(tensor.nbytes())};
}

Bytes Call::input(const at::Tensor& tensor) {
  check(tensor);
  return keep(is_plain(tensor) ? tensor : plain_copy(tensor));
}

Bytes Call::output(const at::Tensor& tensor) {
  check(tensor);
  check_output(tensor);
  results.push_back(tensor);
  if (is_plain(tensor)) return keep(tensor);
  copies_.emplace_back(tensor, at::empty_like(tensor, {}, at::MemoryFormat::Contiguous));
  return keep(copies_.back().second);
}

Bytes Call::in_place(const at::Tensor& tensor) {
  check(tensor);
  check_output(tensor);
  results.push_back(tensor);
  if (is_plain(tensor)) return keep(tensor);
  copies_.emplace_back(tensor, plain_copy(tensor));
  return keep(copies_.back().second);
}

void Call::finish() const {
  if (!copies_.empty()) {
    // Whoever calls this may be a thread that knows nothing of autograd.
    const at::AutoDispatchBelowADInplaceOrView no_autograd;
    for (const auto& [to, from] : copies_) to.copy_(from);
  }
}
// [/tensors]

// [pieces]
Pieces Call::inputs(const std::vector<at::Tensor>& tensors, int ranks) {
  const auto count = static_cast<int>(tensors.size());
  require(count == ranks, " takes ", ranks, " input tensors, got ", count);
  Pieces pieces;
  for (const auto& tensor : tensors) pieces.push_back(input(tensor));
  return pieces;
}

Pieces Call::outputs(const std::vector<at::Tensor>& tensors, int ranks) {
  const auto count = static_cast<int>(tensors.size());
  require(count == ranks, " takes ", ranks, " output tensors, got ", count);
  Pieces pieces;
  for (const auto& tensor : tensors) pieces.push_back(output(tensor));
  return pieces;
}

Pieces Call::split(const at::Tensor& tensor, Bytes bytes, const std::vector<int64_t>& rows,
    int ranks) const {
  const int64_t all = tensor.dim() == 0 ? 1 : tensor.size(0);
  const auto sizes = rows.empty() ? std::vector<int64_t>(ranks, all / ranks) : rows;
  require(static_cast<int>(sizes.size()) == ranks &&
      std::ranges::all_of(sizes, [](int64_t size) { return size >= 0; }) &&
      std::accumulate(sizes.begin(), sizes.end(), int64_t{0}) == all, " cannot split ", all,
      " rows into ", ranks, " pieces of ", at::IntArrayRef(sizes), " rows");
  const size_t row = all == 0 ? 0 : bytes.size() / all;
  Pieces pieces;
  for (const int64_t size : sizes) {
    pieces.push_back(bytes.first(size * row));
    bytes = bytes.subspan(size * row);
  }
  return pieces;
}
// [/pieces]

} // namespace shm_collectives
