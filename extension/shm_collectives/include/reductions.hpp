#pragma once

#include <ATen/core/Tensor.h>

#include "memory.hpp"

namespace shm_collectives {

// [reduction]
// How elements of one type are combined: in the order of the sources. Types of
// 8 and 16 bits are added up as float and rounded once.
class Reduction {
 public:
  using AddFew = void(Bytes target, std::span<const Bytes> sources);

  // Throws if there is no such operation for this type.
  Reduction(at::ScalarType dtype, Op op, int ranks);

  // Writes the combination of the sources, which are as long as the target. The
  // target may be the first of them.
  void operator()(Bytes target, std::span<const Bytes> sources) const;

 private:
  at::Tensor widen(const at::Tensor& source) const;

  at::ScalarType stored_; // the type in memory
  at::ScalarType combined_; // the type that is combined
  at::Tensor& (*combine_)(at::Tensor&, const at::Tensor&, const at::Tensor&);
  AddFew* add_few_ = nullptr; // for a few bytes, if there is one
  int divisor_;
  bool flip_; // unsigned numbers, ordered as signed ones
};
// [/reduction]

} // namespace shm_collectives
