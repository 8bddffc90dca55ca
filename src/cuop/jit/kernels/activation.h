// Functors of smooth neural-network activations. NaN propagates.
#pragma once

#include "cuop/jit/kernels/elementary.h"
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
  template <class T>
  CUOP_FN static auto prepare(T x) {
    return accurate::prepared_logistic<false>(x);
  }
  template <class T, int Count>
  CUOP_FN static T attempt(T x, accurate::Stage<T, Count> stage, accurate::Doubt<T>& doubt) {
    doubt |= accurate::doubt_beyond(x, accurate::kMostQuick<T>);
    return accurate::attempted_sigmoid(x, stage);
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
  template <class T>
  CUOP_FN static auto prepare(T x) {
    return accurate::prepared_logistic<accurate::is_exact_product<T>>(x);
  }
  template <class T, int Count>
  CUOP_FN static T attempt(T x, accurate::Stage<T, Count> stage, accurate::Doubt<T>& doubt) {
    doubt |= accurate::doubt_beyond(x, accurate::kMostQuick<T>);
    return accurate::attempted_silu(x, stage);
  }
};

struct Softplus : Row<1, kFloats, Rule::kInexact, 32> {
  static constexpr const char* name = "softplus";
  static constexpr const char* doc = "log(1 + exp(x)) without overflow.";
  static constexpr Ulps ulps{0.99, 0.93};
  template <class T>
  CUOP_FN static T apply(T x) {
    return math::softplus(x);
  }
  template <class T>
  CUOP_FN static auto prepare(T x) {
    return accurate::prepared_softplus(x);
  }
  template <class T, int Count>
  CUOP_FN static T attempt(T x, accurate::Stage<T, Count> stage, accurate::Doubt<T>& doubt) {
    doubt |= accurate::doubt_of_softplus(x);
    return accurate::quick_softplus(x, stage);
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
  template <class T>
  CUOP_FN static T attempt(T x, accurate::Doubt<T>& doubt) {
    return accurate::attempted_gelu(x, doubt);
  }
};

struct GeluTanh : Row<1, kFloats, Rule::kInexact, 24> {
  static constexpr const char* name = "gelu_tanh";
  static constexpr const char* doc = "The tanh approximation of gelu (arXiv 1606.08415).";
  static constexpr Ulps ulps{0.85, 1.3};
  template <class T>
  CUOP_FN static T apply(T x) {
    return math::gelu_tanh(x);
  }
  template <class T>
  CUOP_FN static auto prepare(T x) {
    return accurate::prepared_gelu_tanh(x);
  }
  template <class T, int Count>
  CUOP_FN static T attempt(T x, accurate::Stage<T, Count> stage, accurate::Doubt<T>& doubt) {
    doubt |= accurate::doubt_beyond(x, accurate::kMostQuickCubic<T>);
    return accurate::attempted_gelu_tanh(x, stage);
  }
};

}  // namespace cuop::jit::fn
