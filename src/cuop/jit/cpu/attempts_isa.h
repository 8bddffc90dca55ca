// What hosts' loops over blocks try first for a functor, where that is not its `apply`: forms for
// the usual arguments, each with its doubt of the others. No kernel of a GPU reads them.
#pragma once

#include "cuop/jit/kernels/accurate/attempts.h"
#include "cuop/jit/kernels/op_list.h"

namespace cuop::jit {

/// `prepare` of the first of two loops, where there is one, and `attempt`; a functor may have them
/// itself.
template <class F>
struct Attempts : F {};

template <>
struct Attempts<fn::Exp> {
  template <class T>
  CUOP_FN static T attempt(T x, accurate::Doubt<T>& doubt) {
    doubt |= accurate::doubt_beyond(x, accurate::kMostQuick<T>);
    return accurate::quick_exp(x);
  }
};

template <>
struct Attempts<fn::Exp2> {
  template <class T>
  CUOP_FN static T attempt(T x, accurate::Doubt<T>& doubt) {
    doubt |= accurate::doubt_beyond(x, accurate::kMostQuick<T>);
    return accurate::quick_exp2(x);
  }
};

template <>
struct Attempts<fn::Expm1> {
  template <class T>
  CUOP_FN static T attempt(T x, accurate::Doubt<T>& doubt) {
    if constexpr (math::has_fast_fma || sizeof(T) == 4) {
      doubt |= accurate::doubt_beyond(x, accurate::kMostQuick<T>);
    }
    return accurate::attempted_expm1(x);
  }
};

template <>
struct Attempts<fn::Log> {
  template <class T>
  CUOP_FN static T attempt(T x, accurate::Doubt<T>& doubt) {
    doubt |= accurate::doubt_of_logs(x);
    return accurate::attempted_log(x);
  }
};

template <>
struct Attempts<fn::Log1p> {
  template <class T>
  CUOP_FN static auto prepare(T x) {
    return accurate::log1p_argument(x);
  }
  template <class T>
  CUOP_FN static T attempt(T x, accurate::Stage<T, 4> argument, accurate::Doubt<T>& doubt) {
    doubt |= accurate::doubt_of_log1p(x, argument);
    return accurate::quick_log1p(argument);
  }
};

template <>
struct Attempts<fn::Log2> {
  template <class T>
  CUOP_FN static T attempt(T x, accurate::Doubt<T>& doubt) {
    doubt |= accurate::doubt_of_logs(x);
    return accurate::attempted_log2(x);
  }
};

template <>
struct Attempts<fn::Log10> {
  template <class T>
  CUOP_FN static T attempt(T x, accurate::Doubt<T>& doubt) {
    doubt |= accurate::doubt_of_logs(x);
    return accurate::attempted_log10(x);
  }
};

template <>
struct Attempts<fn::Rsqrt> {
  template <class T>
  CUOP_FN static T attempt(T x, accurate::Doubt<T>& doubt) {
    doubt |= accurate::doubt_of_rsqrt(x);
    return accurate::attempted_rsqrt(x);
  }
};

template <>
struct Attempts<fn::Cbrt> {
  template <class T>
  CUOP_FN static auto prepare(T x) {
    return accurate::prepared_cbrt(x);
  }
  template <class T, int Count>
  CUOP_FN static T attempt(T x, accurate::Stage<T, Count> stage, accurate::Doubt<T>& doubt) {
    return accurate::attempted_cbrt(x, stage, doubt);
  }
};

template <>
struct Attempts<fn::Erfc> {
  template <class T>
  CUOP_FN static T attempt(T x, accurate::Doubt<T>& doubt) {
    return accurate::attempted_erfc(x, doubt);
  }
};

template <>
struct Attempts<fn::Gelu> {
  template <class T>
  CUOP_FN static T attempt(T x, accurate::Doubt<T>& doubt) {
    return accurate::attempted_gelu(x, doubt);
  }
};

template <>
struct Attempts<fn::Sin> {
  static constexpr bool has_short_stages = true;
  template <class T>
  CUOP_FN static auto prepare(T x) {
    return accurate::prepared_sin(x);
  }
  template <class T, int Count>
  CUOP_FN static T attempt(T x, accurate::Stage<T, Count> stage, accurate::Doubt<T>& doubt) {
    doubt |= accurate::doubt_of_circular(x);
    return accurate::attempted_sin(x, stage);
  }
};

template <>
struct Attempts<fn::Cos> {
  static constexpr bool has_short_stages = true;
  template <class T>
  CUOP_FN static auto prepare(T x) {
    return accurate::prepared_cos(x);
  }
  template <class T, int Count>
  CUOP_FN static T attempt(T x, accurate::Stage<T, Count> stage, accurate::Doubt<T>& doubt) {
    doubt |= accurate::doubt_of_circular(x);
    return accurate::attempted_cos(x, stage);
  }
};

template <>
struct Attempts<fn::Tan> {
  template <class T>
  CUOP_FN static T attempt(T x, accurate::Doubt<T>& doubt) {
    doubt |= accurate::doubt_of_circular(x);
    return accurate::attempted_tan(x);
  }
};

template <>
struct Attempts<fn::Asin> {
  template <class T>
  CUOP_FN static auto prepare(T x) {
    return accurate::prepared_asin(x);
  }
  template <class T, int Count>
  CUOP_FN static T attempt(T x, accurate::Stage<T, Count> stage, accurate::Doubt<T>&) {
    return accurate::attempted_asin(x, stage);
  }
};

template <>
struct Attempts<fn::Atan> {
  template <class T>
  CUOP_FN static auto prepare(T x) {
    return accurate::prepared_atan(x);
  }
  template <class T, int Count>
  CUOP_FN static T attempt(T x, accurate::Stage<T, Count> stage, accurate::Doubt<T>&) {
    return accurate::attempted_atan(x, stage);
  }
};

template <>
struct Attempts<fn::Sinh> {
  template <class T>
  CUOP_FN static auto prepare(T x) {
    return accurate::prepared_sinh(x);
  }
  template <class T, int Count>
  CUOP_FN static T attempt(T x, accurate::Stage<T, Count> stage, accurate::Doubt<T>& doubt) {
    doubt |= accurate::doubt_beyond(x, accurate::kMostQuick<T>);
    return accurate::attempted_sinh(x, stage);
  }
};

template <>
struct Attempts<fn::Cosh> {
  template <class T>
  CUOP_FN static auto prepare(T x) {
    return accurate::prepared_cosh(x);
  }
  template <class T, int Count>
  CUOP_FN static T attempt(T x, accurate::Stage<T, Count> stage, accurate::Doubt<T>& doubt) {
    doubt |= accurate::doubt_beyond(x, accurate::kMostQuick<T>);
    return accurate::attempted_cosh(x, stage);
  }
};

template <>
struct Attempts<fn::Asinh> {
  template <class T>
  CUOP_FN static auto prepare(T x) {
    return accurate::prepared_asinh(x);
  }
  template <class T, int Count>
  CUOP_FN static T attempt(T x, accurate::Stage<T, Count> stage, accurate::Doubt<T>& doubt) {
    return accurate::attempted_asinh(x, stage, doubt);
  }
};

template <>
struct Attempts<fn::Acosh> {
  template <class T>
  CUOP_FN static auto prepare(T x) {
    return accurate::prepared_acosh(x);
  }
  template <class T, int Count>
  CUOP_FN static T attempt(T x, accurate::Stage<T, Count> stage, accurate::Doubt<T>& doubt) {
    return accurate::attempted_acosh(x, stage, doubt);
  }
};

template <>
struct Attempts<fn::Atanh> {
  template <class T>
  CUOP_FN static auto prepare(T x) {
    return accurate::prepared_atanh(x);
  }
  template <class T, int Count>
  CUOP_FN static T attempt(T x, accurate::Stage<T, Count> stage, accurate::Doubt<T>& doubt) {
    return accurate::attempted_atanh(x, stage, doubt);
  }
};

template <>
struct Attempts<fn::Sigmoid> {
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

template <>
struct Attempts<fn::Silu> {
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

template <>
struct Attempts<fn::Softplus> {
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

template <>
struct Attempts<fn::GeluTanh> {
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

}  // namespace cuop::jit
