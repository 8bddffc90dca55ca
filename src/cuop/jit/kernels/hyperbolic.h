// Functors of the hyperbolic functions.
#pragma once

#include "cuop/jit/kernels/complex_math.h"
#include "cuop/jit/kernels/math/hyperbolic.h"
#include "cuop/jit/kernels/row.h"

namespace cuop::jit::fn {

struct Sinh : UnaryMath<kFloatComplex> {
  static constexpr const char* name = "sinh";
  static constexpr const char* doc = "Hyperbolic sine.";
  static constexpr Ulps ulps{0.98, 1.33};
  template <class T>
  CUOP_FN static T apply(T x) {
    return math::sinh(x);
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

}  // namespace cuop::jit::fn
