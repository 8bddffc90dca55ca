// Functors of the exponential, logarithmic, trigonometric and hyperbolic functions and of roots.
#pragma once

#include "cuop/jit/kernels/complex_math.h"
#include "cuop/jit/kernels/elementary.h"
#include "cuop/jit/kernels/row.h"

namespace cuop::jit::fn {

inline constexpr unsigned kFloatComplex = kFloats | kComplexes;

template <unsigned Kinds>
using UnaryMath = Row<1, Kinds, Rule::kInexact, 16>;

struct Exp : UnaryMath<kFloatComplex> {
  static constexpr const char* name = "exp";
  static constexpr const char* doc = "e to the power x.";
  static constexpr Ulps ulps{0.9, 1.05};
  template <class T>
  CUOP_FN static T apply(T x) {
    return math::exp(x);
  }
  template <class T>
  CUOP_FN static T attempt(T x, accurate::Doubt<T>& doubt) {
    doubt |= accurate::doubt_beyond(x, accurate::kMostQuick<T>);
    return accurate::quick_exp(x);
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
  template <class T>
  CUOP_FN static T attempt(T x, accurate::Doubt<T>& doubt) {
    doubt |= accurate::doubt_beyond(x, accurate::kMostQuick<T>);
    return accurate::quick_exp2(x);
  }
};

struct Expm1 : UnaryMath<kFloatComplex> {
  static constexpr const char* name = "expm1";
  static constexpr const char* doc = "exp(x) - 1, accurate near 0.";
  static constexpr Ulps ulps{0.94, 1.4};
  template <class T>
  CUOP_FN static T apply(T x) {
    if constexpr (is_complex_type<T>) {
      using R = RealType<T>;
      const R half_sine = math::sin(x.imag() / 2);
      return {math::expm1(x.real()) * math::cos(x.imag()) - 2 * half_sine * half_sine,
              math::exp(x.real()) * math::sin(x.imag())};
    } else {
      return math::expm1(x);
    }
  }
  template <class T>
  CUOP_FN static T attempt(T x, accurate::Doubt<T>& doubt) {
    if constexpr (math::has_fast_fma || sizeof(T) == 4) {
      doubt |= accurate::doubt_beyond(x, accurate::kMostQuick<T>);
    }
    return accurate::attempted_expm1(x);
  }
};

struct Log : UnaryMath<kFloatComplex> {
  static constexpr const char* name = "log";
  static constexpr const char* doc = "Natural logarithm.";
  static constexpr Ulps ulps{0.97, 0.89};
  template <class T>
  CUOP_FN static T apply(T x) {
    return math::log(x);
  }
  template <class T>
  CUOP_FN static T attempt(T x, accurate::Doubt<T>& doubt) {
    doubt |= accurate::doubt_of_logs(x);
    return accurate::attempted_log(x);
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
  template <class T>
  CUOP_FN static auto prepare(T x) {
    return accurate::log1p_argument(x);
  }
  template <class T>
  CUOP_FN static T attempt(T x, accurate::Stage<T, 4> argument, accurate::Doubt<T>& doubt) {
    doubt |= accurate::doubt_of_log1p(x, argument);
    return accurate::quick_log1p(argument);
  }
};

struct Log2 : UnaryMath<kFloatComplex> {
  static constexpr const char* name = "log2";
  static constexpr const char* doc = "Logarithm to base 2.";
  static constexpr Ulps ulps{0.98, 1.1};
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
  template <class T>
  CUOP_FN static T attempt(T x, accurate::Doubt<T>& doubt) {
    doubt |= accurate::doubt_of_logs(x);
    return accurate::attempted_log2(x);
  }
};

struct Log10 : UnaryMath<kFloatComplex> {
  static constexpr const char* name = "log10";
  static constexpr const char* doc = "Logarithm to base 10.";
  static constexpr Ulps ulps{1.0, 1.0};
  template <class T>
  CUOP_FN static T apply(T x) {
    return math::log10(x);
  }
  template <class T>
  CUOP_FN static T attempt(T x, accurate::Doubt<T>& doubt) {
    doubt |= accurate::doubt_of_logs(x);
    return accurate::attempted_log10(x);
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

struct Sqrt : Row<1, kFloatComplex, Rule::kInexact, 4> {
  static constexpr const char* name = "sqrt";
  static constexpr const char* doc = "Square root; NaN of a negative real number.";
  static constexpr Ulps ulps{0.5, 0.5};
  template <class T>
  CUOP_FN static T apply(T x) {
    return math::sqrt(x);
  }
};

struct Rsqrt : Row<1, kFloats, Rule::kInexact, 4> {
  static constexpr const char* name = "rsqrt";
  static constexpr const char* doc = "1 / sqrt(x).";
  static constexpr Ulps ulps{0.52, 1.5};
  template <class T>
  CUOP_FN static T apply(T x) {
    return math::rsqrt(x);
  }
  template <class T>
  CUOP_FN static T attempt(T x, accurate::Doubt<T>& doubt) {
    doubt |= accurate::doubt_of_rsqrt(x);
    return accurate::attempted_rsqrt(x);
  }
};

struct Cbrt : UnaryMath<kFloats> {
  static constexpr const char* name = "cbrt";
  static constexpr const char* doc = "Cube root, real also of negative numbers.";
  static constexpr Ulps ulps{0.53, 0.51};
  template <class T>
  CUOP_FN static T apply(T x) {
    return math::cbrt(x);
  }
  template <class T>
  CUOP_FN static auto prepare(T x) {
    return accurate::prepared_cbrt(x);
  }
  template <class T, int Count>
  CUOP_FN static T attempt(T x, accurate::Stage<T, Count> stage, accurate::Doubt<T>& doubt) {
    return accurate::attempted_cbrt(x, stage, doubt);
  }
};

struct Hypot : Row<2, kFloats, Rule::kInexact, 8> {
  static constexpr const char* name = "hypot";
  static constexpr const char* doc = "sqrt(x1^2 + x2^2) without overflow.";
  template <class T>
  CUOP_FN static T apply(T a, T b) {
    return math::hypot(a, b);
  }
};

struct Erf : UnaryMath<kFloats> {
  static constexpr const char* name = "erf";
  static constexpr const char* doc = "Error function.";
  static constexpr Ulps ulps{1.0, 1.3};
  template <class T>
  CUOP_FN static T apply(T x) {
    return math::erf(x);
  }
};

struct Erfc : UnaryMath<kFloats> {
  static constexpr const char* name = "erfc";
  static constexpr const char* doc = "1 - erf(x), accurate for large x.";
  static constexpr Ulps ulps{1.0, 1.3};
  template <class T>
  CUOP_FN static T apply(T x) {
    return math::erfc(x);
  }
  template <class T>
  CUOP_FN static T attempt(T x, accurate::Doubt<T>& doubt) {
    return accurate::attempted_erfc(x, doubt);
  }
};

struct Atan2 : Row<2, kFloats, Rule::kInexact, 24> {
  static constexpr const char* name = "atan2";
  static constexpr const char* doc = "Angle of the point (x2, x1) in radians, in [-pi, pi].";
  template <class T>
  CUOP_FN static T apply(T y, T x) {
    return math::atan2(y, x);
  }
};

struct Sin : UnaryMath<kFloatComplex> {
  static constexpr const char* name = "sin";
  static constexpr const char* doc = "Sine of x in radians.";
  static constexpr Ulps ulps{1.0, 1.35};
  template <class T>
  CUOP_FN static T apply(T x) {
    return math::sin(x);
  }
  template <class T>
  CUOP_FN static auto prepare(T x) {
    return accurate::prepared_sin(x);
  }
  template <class T, int Count>
  CUOP_FN static T attempt(T x, accurate::Stage<T, Count> stage, accurate::Doubt<T>& doubt) {
    doubt |= accurate::doubt_of_circular(x);
    return accurate::attempted_sin(x, stage);
  }
};

struct Cos : UnaryMath<kFloatComplex> {
  static constexpr const char* name = "cos";
  static constexpr const char* doc = "Cosine of x in radians.";
  static constexpr Ulps ulps{1.0, 1.35};
  template <class T>
  CUOP_FN static T apply(T x) {
    return math::cos(x);
  }
  template <class T>
  CUOP_FN static auto prepare(T x) {
    return accurate::prepared_cos(x);
  }
  template <class T, int Count>
  CUOP_FN static T attempt(T x, accurate::Stage<T, Count> stage, accurate::Doubt<T>& doubt) {
    doubt |= accurate::doubt_of_circular(x);
    return accurate::attempted_cos(x, stage);
  }
};

struct Tan : UnaryMath<kFloatComplex> {
  static constexpr const char* name = "tan";
  static constexpr const char* doc = "Tangent of x in radians.";
  static constexpr Ulps ulps{1.0, 1.4};
  template <class T>
  CUOP_FN static T apply(T x) {
    return math::tan(x);
  }
  template <class T>
  CUOP_FN static auto prepare(T x) {
    return accurate::prepared_tan(x);
  }
  template <class T, int Count>
  CUOP_FN static T attempt(T x, accurate::Stage<T, Count> stage, accurate::Doubt<T>& doubt) {
    doubt |= accurate::doubt_of_circular(x);
    return accurate::attempted_tan(x, stage);
  }
};

struct Asin : UnaryMath<kFloatComplex> {
  static constexpr const char* name = "asin";
  static constexpr const char* doc = "Inverse sine in [-pi/2, pi/2]; NaN outside [-1, 1].";
  static constexpr Ulps ulps{0.89, 1.2};
  template <class T>
  CUOP_FN static T apply(T x) {
    return math::asin(x);
  }
  template <class T>
  CUOP_FN static auto prepare(T x) {
    return accurate::prepared_asin(x);
  }
  template <class T, int Count>
  CUOP_FN static T attempt(T x, accurate::Stage<T, Count> stage, accurate::Doubt<T>&) {
    return accurate::attempted_asin(x, stage);
  }
};

struct Acos : UnaryMath<kFloatComplex> {
  static constexpr const char* name = "acos";
  static constexpr const char* doc = "Inverse cosine in [0, pi]; NaN outside [-1, 1].";
  static constexpr Ulps ulps{0.88, 1.2};
  template <class T>
  CUOP_FN static T apply(T x) {
    return math::acos(x);
  }
};

struct Atan : UnaryMath<kFloatComplex> {
  static constexpr const char* name = "atan";
  static constexpr const char* doc = "Inverse tangent in [-pi/2, pi/2].";
  static constexpr Ulps ulps{1.0, 1.1};
  template <class T>
  CUOP_FN static T apply(T x) {
    return math::atan(x);
  }
  template <class T>
  CUOP_FN static auto prepare(T x) {
    return accurate::prepared_atan(x);
  }
  template <class T, int Count>
  CUOP_FN static T attempt(T x, accurate::Stage<T, Count> stage, accurate::Doubt<T>&) {
    return accurate::attempted_atan(x, stage);
  }
};

struct Sinh : UnaryMath<kFloatComplex> {
  static constexpr const char* name = "sinh";
  static constexpr const char* doc = "Hyperbolic sine.";
  static constexpr Ulps ulps{0.98, 1.33};
  template <class T>
  CUOP_FN static T apply(T x) {
    return math::sinh(x);
  }
  template <class T>
  CUOP_FN static auto prepare(T x) {
    return accurate::prepared_sinh(x);
  }
  template <class T, int Count>
  CUOP_FN static T attempt(T x, accurate::Stage<T, Count> stage, accurate::Doubt<T>& doubt) {
    doubt |= accurate::doubt_beyond(x, accurate::kMostQuick<T>);
    return accurate::attempted_sinh(x, stage);
  }
};

struct Cosh : UnaryMath<kFloatComplex> {
  static constexpr const char* name = "cosh";
  static constexpr const char* doc = "Hyperbolic cosine.";
  static constexpr Ulps ulps{0.97, 1.1};
  template <class T>
  CUOP_FN static T apply(T x) {
    return math::cosh(x);
  }
  template <class T>
  CUOP_FN static auto prepare(T x) {
    return accurate::prepared_cosh(x);
  }
  template <class T, int Count>
  CUOP_FN static T attempt(T x, accurate::Stage<T, Count> stage, accurate::Doubt<T>& doubt) {
    doubt |= accurate::doubt_beyond(x, accurate::kMostQuick<T>);
    return accurate::attempted_cosh(x, stage);
  }
};

struct Tanh : UnaryMath<kFloatComplex> {
  static constexpr const char* name = "tanh";
  static constexpr const char* doc = "Hyperbolic tangent.";
  static constexpr Ulps ulps{1.0, 1.3};
  template <class T>
  CUOP_FN static T apply(T x) {
    return math::tanh(x);
  }
};

struct Asinh : UnaryMath<kFloatComplex> {
  static constexpr const char* name = "asinh";
  static constexpr const char* doc = "Inverse hyperbolic sine.";
  static constexpr Ulps ulps{0.73, 1.1};
  template <class T>
  CUOP_FN static T apply(T x) {
    return math::asinh(x);
  }
  template <class T>
  CUOP_FN static auto prepare(T x) {
    return accurate::prepared_asinh(x);
  }
  template <class T, int Count>
  CUOP_FN static T attempt(T x, accurate::Stage<T, Count> stage, accurate::Doubt<T>& doubt) {
    return accurate::attempted_asinh(x, stage, doubt);
  }
};

struct Acosh : UnaryMath<kFloatComplex> {
  static constexpr const char* name = "acosh";
  static constexpr const char* doc = "Inverse hyperbolic cosine; NaN below 1.";
  static constexpr Ulps ulps{1.0, 0.86};
  template <class T>
  CUOP_FN static T apply(T x) {
    return math::acosh(x);
  }
  template <class T>
  CUOP_FN static auto prepare(T x) {
    return accurate::prepared_acosh(x);
  }
  template <class T, int Count>
  CUOP_FN static T attempt(T x, accurate::Stage<T, Count> stage, accurate::Doubt<T>& doubt) {
    return accurate::attempted_acosh(x, stage, doubt);
  }
};

struct Atanh : UnaryMath<kFloatComplex> {
  static constexpr const char* name = "atanh";
  static constexpr const char* doc = "Inverse hyperbolic tangent; NaN outside [-1, 1].";
  static constexpr Ulps ulps{0.81, 1.25};
  template <class T>
  CUOP_FN static T apply(T x) {
    return math::atanh(x);
  }
  template <class T>
  CUOP_FN static auto prepare(T x) {
    return accurate::prepared_atanh(x);
  }
  template <class T, int Count>
  CUOP_FN static T attempt(T x, accurate::Stage<T, Count> stage, accurate::Doubt<T>& doubt) {
    return accurate::attempted_atanh(x, stage, doubt);
  }
};

}  // namespace cuop::jit::fn
