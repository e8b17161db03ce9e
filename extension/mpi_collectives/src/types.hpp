#pragma once

#include <map>

#include "requests.hpp"
#include "stuck.hpp"

namespace mpi_collectives {

using frame::Bytes, frame::Dtype, frame::Note, frame::Op, frame::Operation;

// The type of MPI, or none: for floats of 8 and 16 bits, and for bool.
inline MPI_Datatype type_of(Dtype dtype) {
  static const std::map<Dtype, MPI_Datatype> types{{Dtype::uint8, MPI_UINT8_T},
      {Dtype::int8, MPI_INT8_T}, {Dtype::int16, MPI_INT16_T},
      {Dtype::int32, MPI_INT32_T}, {Dtype::int64, MPI_INT64_T},
      {Dtype::uint16, MPI_UINT16_T}, {Dtype::uint32, MPI_UINT32_T},
      {Dtype::uint64, MPI_UINT64_T}, {Dtype::float32, MPI_FLOAT},
      {Dtype::float64, MPI_DOUBLE}, {Dtype::complex64, MPI_C_FLOAT_COMPLEX},
      {Dtype::complex128, MPI_C_DOUBLE_COMPLEX}};
  const auto found = types.find(dtype);
  return found == types.end() ? MPI_DATATYPE_NULL : found->second;
}

// [reduction]
// A type and an operation with which MPI reduces. Where it has none, these lead to the
// frame's own: the type has a pointer to it as an attribute, because MPI gives a
// user-defined operation nothing else. Only the thread of MPI uses this.
class Reduction {
 public:
  explicit Reduction(const Operation& operation) {
    // In the order of Op. The inputs of AVG and PREMUL_SUM have been divided or multiplied.
    static const MPI_Op kOps[] = {MPI_SUM, MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX,
        MPI_BAND, MPI_BOR, MPI_BXOR, MPI_SUM};
    const Note& note = operation.note;
    size_ = frame::size_of(note.dtype);
    type = type_of(note.dtype);
    op = kOps[static_cast<size_t>(note.op)];
    // With a NaN, MPI's result depends on the order of the two, which may differ by rank.
    const bool whole = note.dtype != Dtype::float32 && note.dtype != Dtype::float64;
    const bool ordered = note.op != Op::min && note.op != Op::max;
    if (type != MPI_DATATYPE_NULL && (whole || ordered)) return;
    static const MPI_Op own = create_op();
    op = own;
    own_ = true;
    check(MPI_Type_contiguous(static_cast<int>(size_), MPI_BYTE, &type), "MPI_Type");
    check(MPI_Type_commit(&type), "MPI_Type_commit");
    check(MPI_Type_set_attr(type, attribute(), const_cast<Operation*>(&operation)),
        "MPI_Type_set_attr");
  }
  ~Reduction() {
    if (own_) MPI_Type_free(&type);
  }
  Reduction(const Reduction&) = delete;

  MPI_Count numbers(Bytes bytes) const { return bytes.size() / size_; }

  MPI_Datatype type;
  MPI_Op op;

 private:
  static void combine(void* in, void* in_out, MPI_Count* count, MPI_Datatype* type) {
    void* value = nullptr;
    int found = 0, size = 0;
    MPI_Type_get_attr(*type, attribute(), &value, &found);
    MPI_Type_size(*type, &size);
    const auto view = [&](void* data) {
      return Bytes(static_cast<std::byte*>(data), *count * size);
    };
    const Bytes sources[] = {view(in_out), view(in)};
    combine_or_stop(*static_cast<const Operation*>(value), sources);
  }
  // [/reduction]

  // An exception must not pass through MPI. After a return, MPI would send a wrong result.
  static void combine_or_stop(const Operation& operation, frame::Pieces sources) {
    try {
      operation.combine(sources[0], sources);
    } catch (const std::exception& error) {
      const std::string text = error.what();
      Stuck::forever("a reduction has failed, and MPI with it: " +
              text.substr(0, text.find('\n')) + "; start the processes again",
          Stuck::kHere);
    }
  }

  static MPI_Op create_op() {
    MPI_Op op = MPI_OP_NULL;
    check(MPI_Op_create_c(&combine, /*commute=*/1, &op), "MPI_Op_create_c");
    return op;
  }
  static int attribute() {
    static const int key = [] {
      int created = MPI_KEYVAL_INVALID;
      check(MPI_Type_create_keyval(
                MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &created, nullptr),
          "MPI_Type_create_keyval");
      return created;
    }();
    return key;
  }
  size_t size_;
  bool own_ = false;
};

} // namespace mpi_collectives
