// The lower and upper triangles of matrices.
#pragma once

#include "cuop/core/tensor.h"

namespace cuop {

/// x with zeros above (tril) or below (triu) the k-th diagonal of its matrices, which are the last
/// two axes; elements on the diagonal have column - row == k. ShapeError below 2 dimensions.
Tensor tril(const Tensor& x, int64_t k = 0, const Tensor* out = nullptr);
Tensor triu(const Tensor& x, int64_t k = 0, const Tensor* out = nullptr);

}  // namespace cuop
