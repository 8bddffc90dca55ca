// Functors of the error function and of the activation that is made of it.
#pragma once

#include "cuop/jit/kernels/math/error_function.h"
#include "cuop/jit/kernels/row.h"

namespace cuop::jit::fn {

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
};

struct Gelu : Row<1, kFloats, Rule::kInexact, 24> {
  static constexpr const char* name = "gelu";
  static constexpr const char* doc =
      "x * P(X <= x) for a standard normal X (Hendrycks and Gimpel, arXiv 1606.08415).";
  static constexpr Ulps ulps{0.9, 1.15};
  template <class T>
  CUOP_FN static T apply(T x) {
    return accurate::gelu(x);
  }
};

}  // namespace cuop::jit::fn
