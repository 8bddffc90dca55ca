// Internal: which tensors BLAS can read where they lie.
#pragma once

#include <optional>

#include "cuop/core/linalg.h"
#include "cuop/core/tensor.h"

namespace cuop::kernels {

/// How BLAS reads the matrices of a stack: row-major (kNone) or as the transpose of row-major ones
/// (kTrans), with `ld` elements from one stored row to the next.
struct Reading {
  Trans trans;
  int64_t ld;
};

/// Nothing when the last two axes have strides that BLAS cannot express. A matrix that can be read
/// both ways (a single row or column) is read row-major unless the transpose is preferred.
std::optional<Reading> reading(const Tensor& stack, bool prefer_transposed = false);

/// A row-major copy that repeats nothing along broadcast axes.
Tensor compact(const Tensor& stack);

}  // namespace cuop::kernels
