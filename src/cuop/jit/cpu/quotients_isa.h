// Quotients of integers, element by element, by division of floats, which vectors can and of
// integers cannot.
#pragma once

#include <cstdint>
#include <type_traits>

#include "cuop/jit/cpu/two_stages_isa.h"
#include "cuop/jit/kernels/arithmetic.h"

namespace cuop::jit {
namespace {

/// Of 64 bits: the oldest vectors take longer for them than one division after the other.
#ifdef CUOP_HAS_LANE_FORMS
constexpr bool kHasQuickProducts = true;
#else
constexpr bool kHasQuickProducts = false;
#endif

/// Of numbers of up to 16 bits, of up to 32, and of those of 64 from -2^51 to 2^51 - 1. The
/// quotient of floats is nearer than 3/4 to the true one, and rounds to its floor or one more;
/// which of them is told by what it leaves of a, which is exact. To add `kMiddle` rounds to a whole
/// number and puts it into the last bits.
template <class F, class T>
[[gnu::always_inline]] inline T by_floats(T a, T b) {
  using Real = std::conditional_t<(sizeof(T) <= 2), float, double>;
  using Bits = typename accurate::Format<Real>::Bits;
  using W = std::conditional_t<(sizeof(T) <= 4), uint32_t, uint64_t>;
  constexpr auto kMiddle = static_cast<Real>(sizeof(Real) == 4 ? 0x1.8p23 : 0x1.8p52);
  const Bits middle = accurate::bits_of(kMiddle);
  const auto real = [&](T x) {
    return accurate::from_bits<Real>(static_cast<Bits>(x) + middle) - kMiddle;
  };
  const auto q = static_cast<W>(accurate::bits_of(real(a) / real(b) + kMiddle) - middle);
  const W rest = static_cast<W>(a) - q * static_cast<W>(b);
  const bool is_above = rest != 0 && (static_cast<std::make_signed_t<W>>(rest) < 0) != (b < 0);
  const W result = std::is_same_v<F, fn::FloorDivide> ? q - (is_above ? 1 : 0)
                                                      : rest + (is_above ? static_cast<W>(b) : 0);
  return b == 0 ? T(0) : static_cast<T>(result);
}

/// Whether all are from -2^51 to 2^51 - 1.
template <class T>
[[gnu::always_inline]] inline bool are_short(const T* x, int64_t n) {
  uint64_t digits = 0;
  for (int64_t i = 0; i < n; ++i) {
    const auto bits = static_cast<uint64_t>(x[i]);
    digits |= x[i] < 0 ? ~bits : bits;
  }
  return digits >> 51 == 0;
}

/// floor(a / b) or what it leaves of a; both are 0 where b is.
template <class F, class T>
void run_quotients(void* out, const void* first, const void* second, const void*, int64_t n) {
  promise_whole_vectors(n);
  const auto* a = static_cast<const T*>(first);
  const auto* b = static_cast<const T*>(second);
  auto* result = static_cast<T*>(out);
  if constexpr (sizeof(T) == 8) {
    if (!kHasQuickProducts || !are_short(a, n) || !are_short(b, n)) {
      for (int64_t i = 0; i < n; ++i) result[i] = F::template apply<T>(a[i], b[i]);
      return;
    }
  }
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) result[i] = by_floats<F>(a[i], b[i]);
}

}  // namespace
}  // namespace cuop::jit
