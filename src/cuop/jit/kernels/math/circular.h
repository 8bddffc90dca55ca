// The circular functions under their usual names (kernels/elementary.h).
#pragma once

#include "cuop/jit/kernels/accurate/large_circular.h"

namespace cuop::jit::math {

/// Whether an argument is too large for accurate::sin, cos and tan, or no number.
template <class T>
CUOP_FN bool is_beyond_turns(T x) {
  return !(abs(x) <= T(accurate::kMostCircular));
}
CUOP_FN float sin(float x) {
  return is_beyond_turns(x) ? static_cast<float>(accurate::large_sin(x)) : accurate::sin(x);
}
CUOP_FN double sin(double x) {
  return is_beyond_turns(x) ? accurate::large_sin(x) : accurate::sin(x);
}
CUOP_FN float cos(float x) {
  return is_beyond_turns(x) ? static_cast<float>(accurate::large_cos(x)) : accurate::cos(x);
}
CUOP_FN double cos(double x) {
  return is_beyond_turns(x) ? accurate::large_cos(x) : accurate::cos(x);
}
CUOP_FN float tan(float x) {
  return is_beyond_turns(x) ? static_cast<float>(accurate::large_tan(x)) : accurate::tan(x);
}
CUOP_FN double tan(double x) {
  return is_beyond_turns(x) ? accurate::large_tan(x) : accurate::tan(x);
}

}  // namespace cuop::jit::math
