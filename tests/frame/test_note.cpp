// What ranks compare, and which types a reduction may combine two at a time.

#include "frame/reductions.hpp"

#include <doctest/doctest.h>

using frame::Bytes, frame::Dtype, frame::Kind, frame::Note, frame::Op, frame::Reduction;

namespace {

Bytes bytes_of(const at::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

// The result of 33 ranks that all have a one: combined at once, or two at a time.
double combined(at::ScalarType type, Op op, bool at_once) {
  constexpr int kRanks = 33;
  const Reduction reduction("fake", type, op, kRanks);
  const auto one = at::ones({4}).to(type), sum = one.clone();
  if (at_once) {
    reduction(bytes_of(sum), std::vector(kRanks, bytes_of(one)));
  } else {
    const auto mine = one.clone();
    reduction(bytes_of(sum), std::vector{bytes_of(one)});
    reduction(bytes_of(mine), std::vector{bytes_of(one)});
    for (int rank = 1; rank < kRanks; ++rank) {
      reduction.combine(bytes_of(sum), std::vector{bytes_of(sum), bytes_of(mine)});
    }
  }
  return sum.is_complex() ? at::real(sum.to(at::kComplexFloat))[0].item<double>()
                          : sum.to(at::kFloat)[0].item<double>();
}

} // namespace

TEST_CASE("two at a time gives what all at once gives, where the frame says so") {
  for (const auto type : {at::kByte, at::kShort, at::kUInt32, at::kBool, at::kHalf,
           at::kBFloat16, at::kFloat, at::kDouble, at::kComplexHalf, at::kComplexFloat,
           at::kFloat8_e5m2, at::kFloat8_e4m3fn, at::kFloat8_e5m2fnuz,
           at::kFloat8_e4m3fnuz}) {
    for (const Op op : {Op::sum, Op::avg, Op::min, Op::max}) {
      const bool whole = at::isIntegralType(type, /*includeBool=*/true);
      const bool orders = op == Op::min || op == Op::max;
      if ((whole && op == Op::avg) || (at::isComplexType(type) && orders)) continue;
      Note note;
      note.dtype = static_cast<Dtype>(type);
      note.op = op;
      const double whole_sum = combined(type, op, true);
      const double error = std::abs(combined(type, op, false) - whole_sum) / whole_sum;
      INFO(frame::name(note.dtype) << " with " << frame::name(op) << ": " << error);
      CHECK((error < 0.05) == frame::combines_in_steps(note));
    }
  }
}

TEST_CASE("equal pieces of one rank are no part of what ranks compare") {
  Note note;
  note.kind = Kind::all_to_all;
  Note other = note;
  other.even = 1;
  CHECK(note == other);
  CHECK(other.compared().even == 0);
  frame::compare({note, other}, {"fake", "0", {}});
  other.dtype = Dtype::float32;
  CHECK(note != other);
}
