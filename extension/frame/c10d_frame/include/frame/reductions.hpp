#pragma once

#include <algorithm>

#include <ATen/ATen.h>
#include <ATen/CPUFunctions.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include "bytes.hpp"
#include "note.hpp"

namespace frame {

static_assert(static_cast<int>(Dtype::uint64) == static_cast<int>(at::kUInt64));
static_assert(static_cast<int>(Op::premul_sum) == c10d::ReduceOp::PREMUL_SUM);

// How elements of one type are combined: in the order of the sources. Floating-point types
// of 8 and 16 bits are combined as float and rounded once. AVG divides before it adds, as
// PyTorch documents it, so that a sum cannot overflow where the average does not.
class Reduction {
 public:
  // Throws if there is no such operation for this type.
  Reduction(const std::string& backend, at::ScalarType dtype, Op op, int ranks)
      : stored_(stored_as(dtype)),
        combined_(combined_as(stored_)),
        divisor_(op == Op::avg ? ranks : 1),
        flip_(stored_ != dtype && (op == Op::min || op == Op::max)) {
    TORCH_CHECK_VALUE(op < Op::none && is_defined(dtype, op), "Backend ", backend,
        " cannot reduce ", name(static_cast<Dtype>(dtype)), " with ", name(op));
    combine_ = kCombine[static_cast<size_t>(op)];
    if (op == Op::sum) add_few_ = add_few_of(stored_);
  }

  // Writes the combination of the sources, each at least as long as the target. The target
  // may be the first of them, or either one if there are only two.
  void operator()(Bytes target, Pieces sources) const {
    run(target, sources, divisor_);
  }
  // The same for AVG without the division, for sources that have been divided.
  void combine(Bytes target, Pieces sources) const { run(target, sources, 1); }

 private:
  void run(Bytes target, Pieces sources, int divisor) const {
    const bool few = target.size() <= kFew && sources.size() > 1;
    if (add_few_ != nullptr && few) return add_few_(target, sources);
    const at::AutoDispatchBelowADInplaceOrView no_autograd;
    const size_t item = c10::elementSize(stored_);
    for (size_t start = 0; start < target.size(); start += kChunk * item) {
      const size_t size = std::min(kChunk * item, target.size() - start);
      const auto view = [&](Bytes bytes) {
        const auto count = static_cast<int64_t>(size / item);
        return at::from_blob(bytes.data() + start, count, stored_);
      };
      at::Tensor result = view(target);
      at::Tensor sum = widen(view(sources[0]), divisor);
      at::Tensor out = combined_ == stored_ ? result : sum;
      for (const Bytes source : sources.subspan(1)) {
        combine_(out, sum, widen(view(source), divisor));
        sum = out;
      }
      if (flip_) sum = widen(sum);
      if (!sum.is_same(result)) result.copy_(sum);
    }
  }

  // Elements that are combined at a time: they fit into the cache of a core, and PyTorch
  // does not start threads for so few.
  static constexpr size_t kChunk = 32 << 10;
  // Bytes that a loop of our own adds up in less time than PyTorch.
  static constexpr size_t kFew = 64 << 10;

  // PyTorch cannot add unsigned types of more than a byte; their sums have the same bits
  // as those of the signed ones.
  static at::ScalarType stored_as(at::ScalarType dtype) {
    if (dtype == at::kUInt16) return at::kShort;
    if (dtype == at::kUInt32) return at::kInt;
    return dtype == at::kUInt64 ? at::kLong : dtype;
  }

  static at::ScalarType combined_as(at::ScalarType dtype) {
    const bool two_halves = at::isComplexType(dtype) && c10::elementSize(dtype) == 4;
    if (two_halves) return at::kComplexFloat;
    return at::isReducedFloatingType(dtype) ? at::kFloat : dtype;
  }

  // [defined]
  static bool is_defined(at::ScalarType dtype, Op op) {
    const bool whole = at::isIntegralType(dtype, /*includeBool=*/true);
    const bool is_complex = at::isComplexType(dtype);
    if (dtype == at::ScalarType::Float4_e2m1fn_x2) return false; // two in a byte
    if (!(whole || at::isFloatingType(dtype) || is_complex)) return false;
    if (op == Op::avg || op == Op::premul_sum) return !whole;
    if (op == Op::min || op == Op::max) return !is_complex;
    return op < Op::band || whole;
  }
  // [/defined]

  // Unsigned numbers have the order of signed ones whose highest bit is flipped.
  at::Tensor widen(const at::Tensor& source, int divisor = 1) const {
    const auto bits = 8 * source.itemsize();
    if (flip_) return at::bitwise_xor(source, INT64_MIN >> (64 - bits));
    const at::Tensor wide = source.to(combined_); // the source if the type is the same
    return divisor == 1 ? wide : at::cpu::div(wide, at::scalar_tensor(divisor));
  }

  using Combine = at::Tensor&(at::Tensor&, const at::Tensor&, const at::Tensor&);
  static at::Tensor& add(at::Tensor& out, const at::Tensor& a, const at::Tensor& b) {
    return at::cpu::add_out(out, a, b);
  }
  // In the order of Op; PREMUL_SUM is SUM, because the factor has been applied.
  static constexpr Combine* kCombine[] = {add, add, at::cpu::mul_out,
      at::cpu::minimum_out, at::cpu::maximum_out, at::cpu::bitwise_and_out,
      at::cpu::bitwise_or_out, at::cpu::bitwise_xor_out, add};

  // Four or two elements at a time, as every processor of 64 bits can.
  template <class T>
  static void add_few(Bytes target, Pieces sources) {
    using Several [[gnu::vector_size(16)]] = T;
    const std::byte* one = sources[0].data();
    for (const Bytes source : sources.subspan(1)) {
      size_t at = add_each<Several>(0, target, one, source.data());
      add_each<T>(at, target, one, source.data());
      one = target.data();
    }
  }
  // Copies, because the tensors of a program may lie anywhere. Returns the end.
  template <class Element>
  static size_t add_each(
      size_t at, Bytes target, const std::byte* one, const std::byte* other) {
    for (; at + sizeof(Element) <= target.size(); at += sizeof(Element)) {
      Element a, b;
      std::memcpy(&a, one + at, sizeof(a));
      std::memcpy(&b, other + at, sizeof(b));
      a += b;
      std::memcpy(target.data() + at, &a, sizeof(a));
    }
    return at;
  }
  // Overflow wraps around in PyTorch, as in unsigned numbers.
  using AddFew = void(Bytes target, Pieces sources);
  static AddFew* add_few_of(at::ScalarType dtype) {
    if (dtype == at::kFloat) return add_few<float>;
    if (dtype == at::kDouble) return add_few<double>;
    if (dtype == at::kInt) return add_few<uint32_t>;
    return dtype == at::kLong ? add_few<uint64_t> : nullptr;
  }

  at::ScalarType stored_; // the type in memory
  at::ScalarType combined_; // the type that is combined
  Combine* combine_;
  AddFew* add_few_ = nullptr; // for a few bytes, if there is one
  int divisor_;
  bool flip_; // unsigned numbers, ordered as signed ones
};

// [premul-sum]
// The input, or PREMUL_SUM's multiple of it.
inline at::Tensor scaled(const at::Tensor& input, const c10d::ReduceOp& op) {
  if (op.op_ != c10d::ReduceOp::PREMUL_SUM) return input;
  using Factor = c10d::NCCLPreMulSumSupplement;
  const auto& factor = dynamic_cast<const Factor&>(*op.supplement_);
  const double number = factor.tensor_factor.defined()
      ? factor.tensor_factor.item<double>()
      : factor.double_factor;
  const auto dtype = input.scalar_type();
  const auto wide = at::isReducedFloatingType(dtype) ? at::kFloat : dtype;
  return input.to(wide).mul(number).to(dtype);
}
// [/premul-sum]

} // namespace frame
