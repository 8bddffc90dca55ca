// The logistic function and what is made of it under their usual names (kernels/elementary.h).
#pragma once

#include "cuop/jit/kernels/accurate/exponential.h"
#include "cuop/jit/kernels/accurate/logarithm.h"
#include "cuop/jit/kernels/accurate/quick.h"

namespace cuop::jit::math {

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
