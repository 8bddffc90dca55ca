// Functors of the logarithms.
#pragma once

#include "cuop/jit/kernels/complex_math.h"
#include "cuop/jit/kernels/math/exponential.h"
#include "cuop/jit/kernels/math/logarithm.h"
#include "cuop/jit/kernels/row.h"

namespace cuop::jit::fn {

struct Log : UnaryMath<kFloatComplex> {
  static constexpr const char* name = "log";
  static constexpr const char* doc = "Natural logarithm.";
  static constexpr Ulps ulps{0.97, 0.89};
  template <class T>
  CUOP_FN static T apply(T x) {
    return math::log(x);
  }
};

struct Log1p : UnaryMath<kFloatComplex> {
  static constexpr const char* name = "log1p";
  static constexpr const char* doc = "log(1 + x), accurate near 0.";
  static constexpr Ulps ulps{0.93, 0.9};
  template <class T>
  CUOP_FN static T apply(T x) {
    if constexpr (is_complex_type<T>) {
      using R = RealType<T>;
      const R a = x.real(), b = x.imag();
      const bool is_small = math::abs(a) < R(0.5) && math::abs(b) < R(0.5);
      const R size =
          is_small ? math::log1p(a * (2 + a) + b * b) / 2 : math::log(math::hypot(1 + a, b));
      return {size, math::atan2(b, 1 + a)};
    } else {
      return math::log1p(x);
    }
  }
};

struct Log2 : UnaryMath<kFloatComplex> {
  static constexpr const char* name = "log2";
  static constexpr const char* doc = "Logarithm to base 2.";
  static constexpr Ulps ulps{1.0, 1.1};
  template <class T>
  CUOP_FN static T apply(T x) {
    if constexpr (is_complex_type<T>) {
      constexpr auto scale = RealType<T>(1.442695040888963407359924681001892137L);
      const T y = math::log(x);
      return {y.real() * scale, y.imag() * scale};
    } else {
      return math::log2(x);
    }
  }
};

struct Log10 : UnaryMath<kFloatComplex> {
  static constexpr const char* name = "log10";
  static constexpr const char* doc = "Logarithm to base 10.";
  static constexpr Ulps ulps{1.0, 1.05};
  template <class T>
  CUOP_FN static T apply(T x) {
    return math::log10(x);
  }
};

struct LogAddExp : Row<2, kFloats, Rule::kInexact, 32> {
  static constexpr const char* name = "logaddexp";
  static constexpr const char* doc = "log(exp(x1) + exp(x2)) without overflow.";
  template <class T>
  CUOP_FN static T apply(T a, T b) {
    const T high = a > b ? a : b;
    const T sum = high + math::log1p(math::exp(-math::abs(a - b)));
    const T equal = a + T(0.693147180559945309417232121458176568L);  // also of two infinities
    if (math::is_nan(a) || math::is_nan(b)) return a + b;
    return a == b ? equal : sum;
  }
};

}  // namespace cuop::jit::fn
