// Internal: one matrix of several products, prepared once.
#pragma once

#include <optional>

#include "cuop/core/tensor.h"
#include "cuop/ops/matmul/split_product_internal.h"

namespace cuop {

/// A matrix by which several others are multiplied. On a GPU that multiplies float32 by parts of
/// the elements (split_product.cuh), it is split once where products with the others pay it.
class RepeatedOperand {
 public:
  /// The left (0) or the right (1) operand of products [m, k] @ [k, n] of about these sizes.
  RepeatedOperand(const Tensor& matrix, int side, int64_t m, int64_t n);

  /// out <- matrix @ other, or other @ matrix.
  void multiply(const Tensor& other, const Tensor& out) const;

 private:
  Tensor matrix_;
  int side_;
  int columns_ = 0;  ///< of a tile; 0: not split
  kernels::SplitStack split_;
};

}  // namespace cuop
