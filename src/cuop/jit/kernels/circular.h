// Functors of the circular functions.
#pragma once

#include "cuop/jit/kernels/complex_math.h"
#include "cuop/jit/kernels/math/circular.h"
#include "cuop/jit/kernels/row.h"

namespace cuop::jit::fn {

struct Sin : UnaryMath<kFloatComplex> {
  static constexpr const char* name = "sin";
  static constexpr const char* doc = "Sine of x in radians.";
  static constexpr Ulps ulps{1.0, 1.35};
  template <class T>
  CUOP_FN static T apply(T x) {
    return math::sin(x);
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
};

struct Tan : UnaryMath<kFloatComplex> {
  static constexpr const char* name = "tan";
  static constexpr const char* doc = "Tangent of x in radians.";
  static constexpr Ulps ulps{1.0, 1.4};
  template <class T>
  CUOP_FN static T apply(T x) {
    return math::tan(x);
  }
};

}  // namespace cuop::jit::fn
