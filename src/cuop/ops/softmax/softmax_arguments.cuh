// What the softmax kernels are given; host and device read the same struct.
#pragma once

#include "cuop/jit/kernels/math/exponential.h"
#include "cuop/jit/kernels/math/logarithm.h"

namespace cuop::jit {

/// Where columns are taken.
inline constexpr int kSoftmaxThreads = threads_or(256);

/// x and y are [outer, length, inner], contiguous; by rows, `outer` is the number of rows.
struct SoftmaxArguments {
  const void* x;
  void* y;
  int64_t outer, length, inner;
};

}  // namespace cuop::jit
