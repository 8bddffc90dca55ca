// Functors of piecewise linear activations, apart from the smooth ones, whose elementary functions
// take a compiler longer to read than these to compile. NaN propagates.
#pragma once

#include "cuop/jit/kernels/prelude.h"
#include "cuop/jit/kernels/row.h"

namespace cuop::jit::fn {

struct Relu : Row<1, kReals, Rule::kSame> {
  static constexpr const char* name = "relu";
  static constexpr const char* doc = "maximum(x, 0).";
  template <class T>
  CUOP_FN static T apply(T x) {
    return x < T(0) ? T(0) : x;
  }
};

struct LeakyRelu : Row<2, kFloats, Rule::kInexact> {
  static constexpr const char* name = "leaky_relu";
  static constexpr const char* doc = "x where it is positive, x * slope elsewhere.";
  static constexpr const char* parameters[3] = {"x", "slope", ""};
  template <class T>
  CUOP_FN static T apply(T x, T slope) {
    return x > 0 ? x : x * slope;
  }
};

}  // namespace cuop::jit::fn
