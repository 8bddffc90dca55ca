// The exponential functions under their usual names (kernels/elementary.h).
#pragma once

#include "cuop/jit/kernels/accurate/exponential.h"

namespace cuop::jit::math {

#ifdef __CUDACC_RTC__
CUOP_FN float exp(float x) { return accurate::exp(x); }  // CUDA's: 1.79 ulp, measured
CUOP_FN double exp(double x) { return ::exp(x); }
CUOP_FN float exp2(float x) { return accurate::exp2(x); }
CUOP_FN double exp2(double x) { return ::exp2(x); }
CUOP_FN float expm1(float x) { return accurate::expm1(x); }  // CUDA's: 1.32 ulp, measured
CUOP_FN double expm1(double x) { return ::expm1(x); }
#else
using accurate::exp;
using accurate::exp2;
using accurate::expm1;
#endif

}  // namespace cuop::jit::math
