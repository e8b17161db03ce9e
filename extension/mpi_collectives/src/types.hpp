#pragma once

#include <complex>

#include <mpi.h>

#include "frame/note.hpp"

namespace mpi_collectives {

using frame::Bytes, frame::Dtype, frame::Note, frame::Op;

// What MPI can combine itself: the type and the operation, and what is left to do after
// it. Where MPI has no type (float16, bfloat16, float8) or another order of its numbers,
// the frame combines what the ranks exchange.
struct Reduction {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Op op = MPI_OP_NULL;
  void (*divide)(Bytes, int ranks) = nullptr; // AVG: MPI has only the sum

  explicit operator bool() const { return type != MPI_DATATYPE_NULL && op != MPI_OP_NULL; }
};

template <class T>
void divide(Bytes bytes, int ranks) {
  for (size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
    T number; // a copy, because a tensor may lie anywhere
    std::memcpy(&number, bytes.data() + at, sizeof(T));
    number /= static_cast<T>(ranks);
    std::memcpy(bytes.data() + at, &number, sizeof(T));
  }
}

inline MPI_Datatype type_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::uint8: return MPI_UINT8_T;
    case Dtype::int8: return MPI_INT8_T;
    case Dtype::int16: return MPI_INT16_T;
    case Dtype::int32: return MPI_INT32_T;
    case Dtype::int64: return MPI_INT64_T;
    case Dtype::uint16: return MPI_UINT16_T;
    case Dtype::uint32: return MPI_UINT32_T;
    case Dtype::uint64: return MPI_UINT64_T;
    case Dtype::float32: return MPI_FLOAT;
    case Dtype::float64: return MPI_DOUBLE;
    case Dtype::complex64: return MPI_C_FLOAT_COMPLEX;
    case Dtype::complex128: return MPI_C_DOUBLE_COMPLEX;
    default: return MPI_DATATYPE_NULL;
  }
}

inline Reduction reduction_of(const Note& note) {
  // In the order of Op. The frame has applied the factor of PREMUL_SUM to the input.
  static const MPI_Op kOps[] = {MPI_SUM, MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX, MPI_BAND,
      MPI_BOR, MPI_BXOR, MPI_SUM};
  Reduction reduction{type_of(note.dtype), kOps[static_cast<size_t>(note.op)]};
  // PyTorch says what the smallest number and a NaN are; MPI does not.
  const bool is_float = note.dtype == Dtype::float32 || note.dtype == Dtype::float64;
  if (is_float && (note.op == Op::min || note.op == Op::max)) return {};
  if (note.op != Op::avg) return reduction;
  switch (note.dtype) {
    case Dtype::float32: reduction.divide = divide<float>; break;
    case Dtype::float64: reduction.divide = divide<double>; break;
    case Dtype::complex64: reduction.divide = divide<std::complex<float>>; break;
    case Dtype::complex128: reduction.divide = divide<std::complex<double>>; break;
    default: return {};
  }
  return reduction;
}

} // namespace mpi_collectives
