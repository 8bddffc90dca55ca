// Functors of the square root and of the length of a side.
#pragma once

#include "cuop/jit/kernels/complex_math.h"
#include "cuop/jit/kernels/row.h"

namespace cuop::jit::fn {

struct Sqrt : Row<1, kFloatComplex, Rule::kInexact, 4> {
  static constexpr const char* name = "sqrt";
  static constexpr const char* doc = "Square root; NaN of a negative real number.";
  static constexpr Ulps ulps{0.5, 0.5};
  template <class T>
  CUOP_FN static T apply(T x) {
    return math::sqrt(x);
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

}  // namespace cuop::jit::fn
