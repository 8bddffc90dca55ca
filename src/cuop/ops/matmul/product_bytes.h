// What products of matrices take of a device's memory beside operands and result, and how much of
// its speed they reach. Pure.
#pragma once

#include <cstdint>

#include "cuop/core/dtype.h"
#include "cuop/ops/work_figures.h"

namespace cuop {

/// a [batch, m, k] @ b [batch, k, n]; an operand may be one matrix for all of the batch.
struct ProductExtents {
  int64_t m = 0, n = 0, k = 0;
  int64_t batch = 1;
  bool is_one_a = false, is_one_b = false;
};

/// Bytes at most, of operands of `dtype` that lie as a library reads them, and a result of
/// `result`: parts of float32 operands, copies with longer rows of 16-bit ones, a library's
/// workspace.
int64_t product_bytes(const ProductExtents& extents, DType dtype, DType result,
                      const WorkFigures& figures);

/// The part that they reach of the speed of large ones, which float32 has by parts: of matrices for
/// which parts do not pay, or find no room, less.
double product_pace(const ProductExtents& extents, DType dtype, const WorkFigures& figures);

}  // namespace cuop
