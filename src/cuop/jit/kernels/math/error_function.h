// The error function and its complement under their usual names (kernels/elementary.h).
#pragma once

#include "cuop/jit/kernels/accurate/error_function.h"
#ifndef __CUDACC_RTC__
#include "cuop/jit/kernels/accurate/single.h"
#endif

namespace cuop::jit::math {

#ifdef __CUDACC_RTC__
using accurate::erf;
#else
CUOP_FN float erf(float x) {
  if constexpr (has_fast_fma) {
    return accurate::fused_erf(x);
  } else {
    return accurate::single_erf(x);
  }
}
CUOP_FN double erf(double x) { return accurate::erf(x); }
#endif
using accurate::erfc;

}  // namespace cuop::jit::math
