#include "reductions.hpp"

#include <algorithm>
#include <type_traits>

#include <c10/util/Exception.h>
#include <c10/util/complex.h>

namespace shm_collectives {

namespace {

template <class T>
constexpr bool is_complex = c10::is_complex<T>::value;

// [accumulator]
// What elements of type T are combined as. Overflow of a signed integer is
// undefined in C++ but wraps around in PyTorch: unsigned arithmetic does that.
template <class T>
struct AccumulatorOf {
  using type = float; // Half, BFloat16 and the types of 8 bits
};
template <class T>
  requires(std::is_arithmetic_v<T> || is_complex<T>)
struct AccumulatorOf<T> {
  using type = T;
};
template <>
struct AccumulatorOf<c10::complex<c10::Half>> {
  using type = c10::complex<float>;
};
// [/accumulator]

// [conversions]
template <class T, class A>
[[gnu::always_inline]] inline A widen(T value) {
  if constexpr (std::is_same_v<T, c10::BFloat16>) {
    return __builtin_bit_cast(float, uint32_t{value.x} << 16);
  } else {
    return static_cast<A>(value);
  }
}

// c10 rounds BFloat16 in the same way, but not in vectors.
template <class T, class A>
[[gnu::always_inline]] inline T narrow(A value) {
  if constexpr (std::is_same_v<T, c10::BFloat16>) {
    const auto bits = __builtin_bit_cast(uint32_t, value);
    const uint32_t rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
    const uint16_t result = value != value ? 0x7FC0 : rounded;
    return __builtin_bit_cast(T, result);
  } else {
    return static_cast<T>(value);
  }
}
// [/conversions]

// [operators]
template <class A>
[[gnu::always_inline]] inline A add(A a, A b) {
  if constexpr (std::is_same_v<A, bool>) {
    return a || b;
  } else if constexpr (std::is_integral_v<A>) {
    return static_cast<A>(uint64_t(a) + uint64_t(b));
  } else {
    return a + b;
  }
}

template <class A>
[[gnu::always_inline]] inline A multiply(A a, A b) {
  if constexpr (std::is_integral_v<A>) {
    return static_cast<A>(uint64_t(a) * uint64_t(b));
  } else {
    return a * b;
  }
}

// As torch.minimum and torch.maximum: what is not a number wins.
template <class A>
[[gnu::always_inline]] inline A smaller(A a, A b) {
  return b < a || b != b ? b : a;
}

template <class A>
[[gnu::always_inline]] inline A larger(A a, A b) {
  return a < b || b != b ? b : a;
}
// [/operators]

// [combine]
// Vector instructions, which -O1 does not use, are up to 6 times as fast here.
template <class T, auto combine>
[[gnu::optimize("O3")]]
void reduce(Bytes target, std::span<const Bytes> sources, int divisor) {
  using A = typename AccumulatorOf<T>::type;
  constexpr size_t kBlock = 512; // elements whose sums stay in the L1 cache
  const size_t count = target.size() / sizeof(T);
  A sums[kBlock];
  for (size_t start = 0; start < count; start += kBlock) {
    const size_t length = std::min(kBlock, count - start);
    for (size_t rank = 0; rank < sources.size(); ++rank) {
      const T* source = reinterpret_cast<const T*>(sources[rank].data()) + start;
      if (rank == 0) {
        for (size_t i = 0; i < length; ++i) sums[i] = widen<T, A>(source[i]);
      } else {
        for (size_t i = 0; i < length; ++i) {
          sums[i] = combine(sums[i], widen<T, A>(source[i]));
        }
      }
    }
    T* result = reinterpret_cast<T*>(target.data()) + start;
    if constexpr (!std::is_integral_v<A>) {
      if (divisor != 1) {
        for (size_t i = 0; i < length; ++i) {
          sums[i] = sums[i] / static_cast<A>(static_cast<float>(divisor));
        }
      }
    }
    for (size_t i = 0; i < length; ++i) result[i] = narrow<T, A>(sums[i]);
  }
}
// [/combine]

using Function = void (*)(Bytes, std::span<const Bytes>, int);

// The function for an operation on elements of type T, or null.
template <class T>
Function choose(Op op) {
  using A = typename AccumulatorOf<T>::type;
  if constexpr (std::is_integral_v<T>) {
    switch (op) {
      case Op::band:
        return reduce<T, [](A a, A b) -> A { return a & b; }>;
      case Op::bor:
        return reduce<T, [](A a, A b) -> A { return a | b; }>;
      case Op::bxor:
        return reduce<T, [](A a, A b) -> A { return a ^ b; }>;
      default:
        break;
    }
  }
  if constexpr (!is_complex<T>) {
    if (op == Op::min) return reduce<T, smaller<A>>;
    if (op == Op::max) return reduce<T, larger<A>>;
  }
  switch (op) {
    case Op::sum:
      return reduce<T, add<A>>;
    case Op::avg:
    case Op::premul_sum: // the factor has been applied before
      return std::is_integral_v<T> ? nullptr : reduce<T, add<A>>;
    case Op::product:
      return reduce<T, multiply<A>>;
    default:
      return nullptr;
  }
}

Function choose(c10::ScalarType dtype, Op op) {
  switch (dtype) {
#define SHM_CASE(type, name)  \
  case c10::ScalarType::name: \
    return choose<type>(op);
    AT_FORALL_SCALAR_TYPES_WITH_COMPLEX(SHM_CASE)
    SHM_CASE(uint16_t, UInt16)
    SHM_CASE(uint32_t, UInt32)
    SHM_CASE(uint64_t, UInt64)
#undef SHM_CASE
    default:
      return nullptr;
  }
}

} // namespace

Reduction::Reduction(c10::ScalarType dtype, Op op, int ranks)
    : function_(choose(dtype, op)), divisor_(op == Op::avg ? ranks : 1) {
  TORCH_CHECK_VALUE(function_ != nullptr, "Backend shm cannot reduce ", c10::toString(dtype),
      " with ", name(op));
}

void Reduction::operator()(Bytes target, std::span<const Bytes> sources) const {
  function_(target, sources, divisor_);
}

} // namespace shm_collectives
