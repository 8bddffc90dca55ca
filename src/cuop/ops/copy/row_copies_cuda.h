// Internal: strided copies as calls of a GPU's copy engine, which takes rows that lie apart.
#pragma once

#include <vector>

#include "cuop/backend/cuda/row_copy.h"
#include "cuop/core/tensor.h"

namespace cuop {

/// Which rows are worth a call.
struct RowLimits {
  int64_t least_row_bytes = 0;
  int64_t least_call_bytes = 0;  ///< of all rows of a call
  int64_t most_calls = 0;
};

/// dst <- src, of one dtype and shape, by rows that have neighbours in both. None where rows or
/// calls are beyond the limits, or there is but one row.
std::vector<backend::cuda::RowCopy> row_copies(const Tensor& dst, const Tensor& src,
                                               const RowLimits& limits);

/// dst <- src, of one dtype and shape; one of them is on the host, the other on a GPU. Done when
/// the call returns. False, and nothing is done, unless the host's memory is page-locked and its
/// rows are long enough for the copy engine to be faster than threads that pack them.
bool copy_locked_rows(const Tensor& dst, const Tensor& src);

}  // namespace cuop
