// What the kernel of transposed copies is given; host and device read the same struct.
#pragma once

#include "cuop/ops/places.cuh"

namespace cuop::jit {

inline constexpr int kTransposeThreads = 256;

/// For every position of the batch axes a matrix is copied whose columns lie one after the other in
/// `from` and whose rows lie one after the other in `to`. Strides are in elements.
struct TransposedCopy {
  const void* from;
  void* to;
  int64_t rows, columns;
  int64_t row_stride;     ///< of `from`
  int64_t column_stride;  ///< of `to`
  int64_t down, across;   ///< tiles along the rows and the columns
  int64_t tiles;          ///< of all matrices
  Places<2> batch;        ///< of `from` and `to`; there may be no axes
};

}  // namespace cuop::jit
