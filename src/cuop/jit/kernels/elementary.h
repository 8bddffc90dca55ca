// The elementary functions under their usual names, to 1 ulp of float and 1.5 of double: those of
// accurate/, and on GPUs CUDA's own where tests/gpu/accuracy_test.cpp finds them within that.
#pragma once

#include "cuop/jit/kernels/accurate/attempts.h"
#include "cuop/jit/kernels/accurate/circular.h"
#include "cuop/jit/kernels/accurate/error_function.h"
#include "cuop/jit/kernels/accurate/in_double.h"
#include "cuop/jit/kernels/accurate/inverse_circular.h"
#include "cuop/jit/kernels/accurate/logarithm.h"
#include "cuop/jit/kernels/accurate/root.h"
#include "cuop/jit/kernels/accurate/single.h"

namespace cuop::jit::math {

#ifdef __CUDACC_RTC__
CUOP_FN float cbrt(float x) { return ::cbrtf(x); }
CUOP_FN double cbrt(double x) { return ::cbrt(x); }
CUOP_FN float exp(float x) { return accurate::exp(x); }  // CUDA's: 1.79 ulp, measured
CUOP_FN double exp(double x) { return ::exp(x); }
CUOP_FN float exp2(float x) { return accurate::exp2(x); }
CUOP_FN double exp2(double x) { return ::exp2(x); }
CUOP_FN float expm1(float x) { return accurate::expm1(x); }  // CUDA's: 1.32 ulp, measured
CUOP_FN double expm1(double x) { return ::expm1(x); }
CUOP_FN float log(float x) { return ::logf(x); }
CUOP_FN double log(double x) { return ::log(x); }
CUOP_FN float log10(float x) { return accurate::log10(x); }
CUOP_FN double log10(double x) { return ::log10(x); }
CUOP_FN float log1p(float x) { return ::log1pf(x); }
CUOP_FN double log1p(double x) { return ::log1p(x); }
CUOP_FN float log2(float x) { return ::log2f(x); }
CUOP_FN double log2(double x) { return ::log2(x); }
CUOP_FN float cosh(float x) { return accurate::cosh(x); }
CUOP_FN double cosh(double x) { return ::cosh(x); }
CUOP_FN float tanh(float x) { return accurate::quick_tanh(x); }
CUOP_FN double tanh(double x) { return ::tanh(x); }
using accurate::atan;
using accurate::erf;
#else
using accurate::cbrt;
using accurate::cosh;
using accurate::exp;
using accurate::exp2;
using accurate::expm1;
using accurate::log;
using accurate::log10;
using accurate::log1p;
using accurate::log2;
CUOP_FN float erf(float x) {
  if constexpr (has_fast_fma) {
    return accurate::fused_erf(x);
  } else {
    return accurate::single_erf(x);
  }
}
CUOP_FN double erf(double x) { return accurate::erf(x); }
template <class T>
CUOP_FN T atan(T x) {
  if constexpr (has_fast_fma) {
    return accurate::fused_atan(x, accurate::fused_atan_quotient(x));
  } else {
    return accurate::atan(x);
  }
}
template <class T>
CUOP_FN T tanh(T x) {
  if constexpr (has_fast_fma) {
    return accurate::fused_tanh(x);
  } else if constexpr (sizeof(T) == 4) {
    return accurate::short_tanh(x);
  } else {
    return accurate::quick_tanh(x);
  }
}
#endif
using accurate::acos;
using accurate::acosh;
using accurate::asin;
using accurate::asinh;
using accurate::atanh;
using accurate::erfc;
using accurate::rsqrt;
using accurate::sinh;

/// Whether an argument is too large for accurate::sin, cos and tan, or no number.
template <class T>
CUOP_FN bool is_beyond_turns(T x) {
  return !(abs(x) <= T(accurate::kMostCircular));
}
CUOP_FN float sin(float x) {
  return is_beyond_turns(x) ? static_cast<float>(::sin(double(x))) : accurate::sin(x);
}
CUOP_FN double sin(double x) { return is_beyond_turns(x) ? ::sin(x) : accurate::sin(x); }
CUOP_FN float cos(float x) {
  return is_beyond_turns(x) ? static_cast<float>(::cos(double(x))) : accurate::cos(x);
}
CUOP_FN double cos(double x) { return is_beyond_turns(x) ? ::cos(x) : accurate::cos(x); }
CUOP_FN float tan(float x) {
  return is_beyond_turns(x) ? static_cast<float>(::tan(double(x))) : accurate::tan(x);
}
CUOP_FN double tan(double x) { return is_beyond_turns(x) ? ::tan(x) : accurate::tan(x); }

/// Whether an argument is too large for the quick functions, or no number.
template <class T>
CUOP_FN bool is_beyond_quick(T x, T most = accurate::kMostQuick<T>) {
  return !(abs(x) <= most);
}
template <class T>
CUOP_FN T sigmoid(T x) {
  return is_beyond_quick(x) ? accurate::sigmoid(x) : accurate::quick_sigmoid(x);
}
template <class T>
CUOP_FN T silu(T x) {
  return is_beyond_quick(x) ? accurate::silu(x) : accurate::quick_silu(x);
}
template <class T>
CUOP_FN T softplus(T x) {
  return is_beyond_quick(x) ? accurate::softplus(x) : accurate::quick_softplus(x);
}
template <class T>
CUOP_FN T gelu_tanh(T x) {
  const bool is_beyond = is_beyond_quick(x, accurate::kMostQuickCubic<T>);
  return is_beyond ? accurate::gelu_tanh(x) : accurate::quick_gelu_tanh(x);
}

}  // namespace cuop::jit::math
