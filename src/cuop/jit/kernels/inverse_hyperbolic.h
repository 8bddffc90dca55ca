// Functors of the inverse hyperbolic functions.
#pragma once

#include "cuop/jit/kernels/complex_math.h"
#include "cuop/jit/kernels/math/inverse_hyperbolic.h"
#include "cuop/jit/kernels/row.h"

namespace cuop::jit::fn {

struct Asinh : UnaryMath<kFloatComplex> {
  static constexpr const char* name = "asinh";
  static constexpr const char* doc = "Inverse hyperbolic sine.";
  static constexpr Ulps ulps{0.73, 1.1};
  template <class T>
  CUOP_FN static T apply(T x) {
    return math::asinh(x);
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
};

struct Atanh : UnaryMath<kFloatComplex> {
  static constexpr const char* name = "atanh";
  static constexpr const char* doc = "Inverse hyperbolic tangent; NaN outside [-1, 1].";
  static constexpr Ulps ulps{0.81, 1.25};
  template <class T>
  CUOP_FN static T apply(T x) {
    return math::atanh(x);
  }
};

}  // namespace cuop::jit::fn
