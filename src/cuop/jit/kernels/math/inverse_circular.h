// The inverse circular functions under their usual names (kernels/elementary.h).
#pragma once

#include "cuop/jit/kernels/accurate/inverse_circular.h"

namespace cuop::jit::math {

#ifdef __CUDACC_RTC__
using accurate::atan;
#else
template <class T>
CUOP_FN T atan(T x) {
  if constexpr (has_fast_fma) {
    return accurate::fused_atan(x, accurate::fused_atan_quotient(x));
  } else {
    return accurate::atan(x);
  }
}
#endif
using accurate::acos;
using accurate::asin;

}  // namespace cuop::jit::math
