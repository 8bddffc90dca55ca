// What the normalisation kernels are given; host and device read the same struct.
#pragma once

#include "cuop/jit/kernels/prelude.h"

namespace cuop::jit {

/// x and y are [rows, length], contiguous; gamma and beta have an entry for each `inner`
/// neighbours.
struct NormArguments {
  const void* x;
  void* y;
  const void* gamma;
  const void* beta;  ///< null: none
  int64_t rows, length, inner;
  double eps;
};

}  // namespace cuop::jit
