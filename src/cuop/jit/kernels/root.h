// Functors of the other roots.
#pragma once

#include "cuop/jit/kernels/math/root.h"
#include "cuop/jit/kernels/row.h"

namespace cuop::jit::fn {

struct Rsqrt : Row<1, kFloats, Rule::kInexact, 4> {
  static constexpr const char* name = "rsqrt";
  static constexpr const char* doc = "1 / sqrt(x).";
  static constexpr Ulps ulps{0.52, 1.5};
  template <class T>
  CUOP_FN static T apply(T x) {
    return math::rsqrt(x);
  }
};

struct Cbrt : UnaryMath<kFloats> {
  static constexpr const char* name = "cbrt";
  static constexpr const char* doc = "Cube root, real also of negative numbers.";
  static constexpr Ulps ulps{0.83, 0.51};
  template <class T>
  CUOP_FN static T apply(T x) {
    return math::cbrt(x);
  }
};

}  // namespace cuop::jit::fn
