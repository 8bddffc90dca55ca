// Roots but the square root under their usual names (kernels/elementary.h).
#pragma once

#include "cuop/jit/kernels/accurate/root.h"

namespace cuop::jit::math {

#ifdef __CUDACC_RTC__
CUOP_FN float cbrt(float x) { return ::cbrtf(x); }
CUOP_FN double cbrt(double x) { return ::cbrt(x); }
#else
using accurate::cbrt;
#endif
using accurate::rsqrt;

}  // namespace cuop::jit::math
