#pragma once

#include <ATen/ATen.h>

#include "bytes.hpp"

namespace frame {

// A sparse tensor as bytes: its indices, and then its values.
inline at::Tensor packed(const at::Tensor& tensor) {
  const auto bytes_of = [](const at::Tensor& piece) {
    return piece.contiguous().view({-1}).view(at::kByte);
  };
  const auto whole = tensor.coalesce();
  return at::cat({bytes_of(whole.indices()), bytes_of(whole.values())});
}

// The sum of packed tensors that have the sizes and the type of `like`: all their
// elements, of which those with the same index are added.
inline at::Tensor sum_of(Blobs& tensors, const at::Tensor& like) {
  const int64_t dimensions = like.sparse_dim();
  std::vector<int64_t> sizes = like.sizes().slice(dimensions).vec(); // of one value
  const size_t index_bytes = dimensions * sizeof(int64_t);
  // Unsigned: if no rank has a value, one may have more bytes than can be counted.
  const size_t elements = c10::multiply_integers(sizes);
  const size_t value_bytes = elements * like.element_size();
  const size_t item = std::max<size_t>(1, index_bytes + value_bytes);
  sizes.insert(sizes.begin(), 0); // the number of values
  std::vector<at::Tensor> indices, values;
  for (auto& bytes : tensors) {
    sizes[0] = bytes.size() / item;
    auto* const after_indices = bytes.data() + sizes[0] * index_bytes;
    indices.push_back(at::from_blob(bytes.data(), {dimensions, sizes[0]}, at::kLong));
    values.push_back(at::from_blob(after_indices, sizes, like.scalar_type()));
  }
  // Without the checks of PyTorch's constructor, which would warn the program.
  return at::_sparse_coo_tensor_with_dims_and_tensors(dimensions, like.dense_dim(),
      like.sizes(), at::cat(indices, 1), at::cat(values), like.options(),
      /*is_coalesced=*/false)
      .coalesce();
}

} // namespace frame
