// Functors of the angles that belong to sines, cosines and tangents.
#pragma once

#include "cuop/jit/kernels/complex_math.h"
#include "cuop/jit/kernels/math/inverse_circular.h"
#include "cuop/jit/kernels/row.h"

namespace cuop::jit::fn {

struct Asin : UnaryMath<kFloatComplex> {
  static constexpr const char* name = "asin";
  static constexpr const char* doc = "Inverse sine in [-pi/2, pi/2]; NaN outside [-1, 1].";
  static constexpr Ulps ulps{0.89, 1.2};
  template <class T>
  CUOP_FN static T apply(T x) {
    return math::asin(x);
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
};

struct Atan2 : Row<2, kFloats, Rule::kInexact, 24> {
  static constexpr const char* name = "atan2";
  static constexpr const char* doc = "Angle of the point (x2, x1) in radians, in [-pi, pi].";
  template <class T>
  CUOP_FN static T apply(T y, T x) {
    return math::atan2(y, x);
  }
};

}  // namespace cuop::jit::fn
