// Functors of smooth neural-network activations but gelu. NaN propagates.
#pragma once

#include "cuop/jit/kernels/math/logistic.h"
#include "cuop/jit/kernels/row.h"

namespace cuop::jit::fn {

struct Sigmoid : Row<1, kFloats, Rule::kInexact, 16> {
  static constexpr const char* name = "sigmoid";
  static constexpr const char* doc = "1 / (1 + exp(-x)).";
  static constexpr Ulps ulps{1.0, 1.05};
  template <class T>
  CUOP_FN static T apply(T x) {
    return math::sigmoid(x);
  }
};

struct Silu : Row<1, kFloats, Rule::kInexact, 16> {
  static constexpr const char* name = "silu";
  static constexpr const char* doc = "x * sigmoid(x); 0 at minus infinity.";
  static constexpr Ulps ulps{0.9, 1.4};
  template <class T>
  CUOP_FN static T apply(T x) {
    return math::silu(x);
  }
};

struct Softplus : Row<1, kFloats, Rule::kInexact, 32> {
  static constexpr const char* name = "softplus";
  static constexpr const char* doc = "log(1 + exp(x)) without overflow.";
  static constexpr Ulps ulps{0.99, 1.1};
  template <class T>
  CUOP_FN static T apply(T x) {
    return math::softplus(x);
  }
};

struct GeluTanh : Row<1, kFloats, Rule::kInexact, 24> {
  static constexpr const char* name = "gelu_tanh";
  static constexpr const char* doc = "The tanh approximation of gelu (arXiv 1606.08415).";
  static constexpr Ulps ulps{0.94, 1.3};
  template <class T>
  CUOP_FN static T apply(T x) {
    return math::gelu_tanh(x);
  }
};

}  // namespace cuop::jit::fn
