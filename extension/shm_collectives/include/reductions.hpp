#pragma once

#include <span>

#include <c10/core/ScalarType.h>

#include "memory.hpp"

namespace shm_collectives {

// [reduction]
// How elements of one type are combined. Always from rank 0 up, whoever does it
// and in however many parts, so that the bits are the same everywhere and in
// every run. Types of 8 and 16 bits are added up as float and rounded once.
class Reduction {
 public:
  // Throws if there is no such operation for this type.
  Reduction(c10::ScalarType dtype, Op op, int ranks);

  // Writes the combination of the sources, which are as long as the target and
  // may be the target.
  void operator()(Bytes target, std::span<const Bytes> sources) const;

 private:
  using Function = void (*)(Bytes target, std::span<const Bytes> sources, int divisor);
  Function function_;
  int divisor_;
};
// [/reduction]

} // namespace shm_collectives
