// Matrix products with the semantics of NumPy and the Array API.
#pragma once

#include "cuop/core/tensor.h"
#include "cuop/ops/linalg_options.h"

namespace cuop {

/// a @ b. 1-D arguments are a row (a) or a column (b) whose axis is dropped from the result;
/// leading axes are a batch and broadcast. Computes in the promoted dtype of a and b: float16 and
/// bfloat16 accumulate in float32 and round once, or, with `options.dtype` float32, not at all (a
/// GPU multiplies them on matrix units all the same); integers wrap, bool is "or" of "and".
/// Transposed and other strided views are used where they lie when BLAS can read them. With an
/// alpha of 0 a and b are not read, with a beta of 0 out is not. Errors: ShapeError for sizes that
/// do not fit (both shapes named), DTypeError for an alpha or beta beyond an integer dtype and for
/// a dtype of the result that these operands do not have, ExecutionError for beta without `out` or
/// a complex (or, for integers, fractional) alpha or beta; DeviceError when the CPU has no BLAS
/// library.
Tensor matmul(const Tensor& a, const Tensor& b, const MatmulOptions& options = {},
              const Tensor* out = nullptr);

/// matmul of [..., M, K] and [..., K, N] with at least 3 dimensions and equal leading axes.
Tensor batch_matmul(const Tensor& a, const Tensor& b, const MatmulOptions& options = {},
                    const Tensor* out = nullptr);

/// a[i] * b[j] for two vectors.
Tensor outer(const Tensor& a, const Tensor& b, const Tensor* out = nullptr);

/// Sum of conj(a) * b along `axis` of the broadcast shapes (Array API vecdot).
Tensor vecdot(const Tensor& a, const Tensor& b, int64_t axis = -1, const Tensor* out = nullptr);

}  // namespace cuop
