// The logarithms under their usual names (kernels/elementary.h).
#pragma once

#include "cuop/jit/kernels/accurate/logarithm.h"

namespace cuop::jit::math {

#ifdef __CUDACC_RTC__
CUOP_FN float log(float x) { return ::logf(x); }
CUOP_FN double log(double x) { return ::log(x); }
CUOP_FN float log10(float x) { return accurate::log10(x); }
CUOP_FN double log10(double x) { return ::log10(x); }
CUOP_FN float log1p(float x) { return ::log1pf(x); }
CUOP_FN double log1p(double x) { return ::log1p(x); }
CUOP_FN float log2(float x) { return ::log2f(x); }
CUOP_FN double log2(double x) { return ::log2(x); }
#else
using accurate::log;
using accurate::log10;
using accurate::log1p;
using accurate::log2;
#endif

}  // namespace cuop::jit::math
