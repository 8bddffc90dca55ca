// The hyperbolic functions under their usual names (kernels/elementary.h).
#pragma once

#include "cuop/jit/kernels/accurate/exponential.h"
#include "cuop/jit/kernels/accurate/quick.h"
#ifndef __CUDACC_RTC__
#include "cuop/jit/kernels/accurate/fused_exponential.h"
#include "cuop/jit/kernels/accurate/in_double.h"
#endif

namespace cuop::jit::math {

#ifdef __CUDACC_RTC__
CUOP_FN float cosh(float x) { return accurate::cosh(x); }
CUOP_FN double cosh(double x) { return ::cosh(x); }
CUOP_FN float tanh(float x) { return accurate::quick_tanh(x); }
CUOP_FN double tanh(double x) { return ::tanh(x); }
#else
using accurate::cosh;
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
using accurate::sinh;

}  // namespace cuop::jit::math
