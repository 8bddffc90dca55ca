// What the pooling kernel is given; host and device read the same struct.
#pragma once

#include "cuop/jit/kernels/divisor.h"

namespace cuop::jit {

inline constexpr int kPoolThreads = 256;

/// x is [planes, in...], y [planes, out...], both contiguous with three spatial axes.
struct PoolArguments {
  const void* x;
  void* y;
  int64_t count;  ///< elements of y
  int64_t in[3], out[3], kernel[3], stride[3], padding[3];
  Divisor by_out[3];          ///< for indices of 32 bits
  int64_t count_include_pad;  ///< 0 or 1
};

}  // namespace cuop::jit
