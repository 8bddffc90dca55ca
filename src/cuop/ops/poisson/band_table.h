// Internal: a matrix in bands (core/five_point.h) as kernels read it.
#pragma once

#include "cuop/core/tensor.h"

namespace cuop {

/// A matrix in bands, with its numbers where they are used.
struct BandTable {
  int64_t taps = 1;
  Tensor first;    ///< int64 [rows]
  Tensor weights;  ///< [rows, taps], of the dtype of what is mapped
};
}  // namespace cuop
