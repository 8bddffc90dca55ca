// Kernel text on the host: what prelude.h takes from the standard library and g++.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>

#define CUOP_FN [[gnu::always_inline]] inline
/// Of what is seldom needed. Static: the instructions of one file are not those of another.
#define CUOP_SELDOM_FN [[gnu::noinline, maybe_unused]] static
#define CUOP_ROLLED

// glibc says in its headers which functions have vector versions only under -ffast-math; these
// declarations say it under strict arithmetic too.
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__)
#define CUOP_VECTOR_MATH(name)                                                               \
  __attribute__((simd("notinbranch"), const, nothrow)) double name(double, double) noexcept; \
  __attribute__((simd("notinbranch"), const, nothrow)) float name##f(float, float) noexcept;
extern "C" {
CUOP_VECTOR_MATH(atan2)
CUOP_VECTOR_MATH(pow)
}
#undef CUOP_VECTOR_MATH
#endif

namespace cuop::jit {

template <class R>
using Complex = std::complex<R>;

namespace math {
inline constexpr double infinity = __builtin_inf();
inline constexpr double nan = __builtin_nan("");
#ifdef __FMA__
inline constexpr bool has_fast_fma = true;
#else
inline constexpr bool has_fast_fma = false;
#endif
CUOP_FN float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
CUOP_FN double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
CUOP_FN double ldexp(double x, int exponent) { return __builtin_ldexp(x, exponent); }
}  // namespace math

}  // namespace cuop::jit
