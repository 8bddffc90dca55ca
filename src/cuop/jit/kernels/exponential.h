// Functors of the exponential functions.
#pragma once

#include "cuop/jit/kernels/complex_math.h"
#include "cuop/jit/kernels/math/exponential.h"
#include "cuop/jit/kernels/row.h"

namespace cuop::jit::fn {

#ifndef CUOP_REAL_ONLY
/// Of a complex number: cos(y) - 1 without the cancellation near 0.
template <class T>
CUOP_FN T complex_expm1(T x) {
  using R = RealType<T>;
  const R half_sine = math::sin(x.imag() / 2);
  return {math::expm1(x.real()) * math::cos(x.imag()) - 2 * half_sine * half_sine,
          math::exp(x.real()) * math::sin(x.imag())};
}
#endif

struct Exp : UnaryMath<kFloatComplex> {
  static constexpr const char* name = "exp";
  static constexpr const char* doc = "e to the power x.";
  static constexpr Ulps ulps{0.9, 1.05};
  template <class T>
  CUOP_FN static T apply(T x) {
    return math::exp(x);
  }
};

struct Exp2 : UnaryMath<kFloatComplex> {
  static constexpr const char* name = "exp2";
  static constexpr const char* doc = "2 to the power x.";
  static constexpr Ulps ulps{1.0, 1.06};
  template <class T>
  CUOP_FN static T apply(T x) {
    if constexpr (is_complex_type<T>) {
      constexpr auto ln2 = RealType<T>(0.693147180559945309417232121458176568L);
      return math::exp(T(x.real() * ln2, x.imag() * ln2));
    } else {
      return math::exp2(x);
    }
  }
};

struct Expm1 : UnaryMath<kFloatComplex> {
  static constexpr const char* name = "expm1";
  static constexpr const char* doc = "exp(x) - 1, accurate near 0.";
  static constexpr Ulps ulps{1.0, 1.4};
  template <class T>
  CUOP_FN static T apply(T x) {
    if constexpr (is_complex_type<T>) {
      return complex_expm1(x);
    } else {
      return math::expm1(x);
    }
  }
};

}  // namespace cuop::jit::fn
