// The BLAS operations on tensors, for floating, complex and integer dtypes (trsm, which divides,
// not for integers). float16 and bfloat16 are computed in float32 and rounded once; integers wrap,
// and their coefficients must be whole numbers that the dtype holds.
#pragma once

#include "cuop/core/tensor.h"
#include "cuop/ops/linalg_options.h"

namespace cuop {

/// alpha * x of any shape; `out` may be x.
Tensor scal(Scalar alpha, const Tensor& x, const Tensor* out = nullptr);

/// alpha * x + y for equal shapes, one rounding a product and one a sum; `out` may be x
/// or y.
Tensor axpy(Scalar alpha, const Tensor& x, const Tensor& y, const Tensor* out = nullptr);

/// Sum of x[i] * y[i] (of conj(x[i]) * y[i] when `conjugate`) over two vectors, in the dtype that
/// both promote to. Floating and complex dtypes accumulate in float64; integers wrap in their
/// dtype. The result does not depend on the number of threads.
DotValue dot(const Tensor& x, const Tensor& y, bool conjugate = false);

/// C <- alpha * op(A) op(B) + beta * C for matrices op(A) [M, K], op(B) [K, N]; dtypes and errors
/// as matmul, which also takes vectors and batches.
Tensor gemm(const Tensor& a, const Tensor& b, const GemmOptions& options = {},
            const Tensor* out = nullptr);

/// y <- alpha * op(A) x + beta * y for A [M, N].
Tensor gemv(const Tensor& a, const Tensor& x, const GemvOptions& options = {},
            const Tensor* out = nullptr);

/// C <- alpha * A B + beta * C, or B A for Side::kRight, with a symmetric A of which one triangle
/// is read (symmetric, not Hermitian, for complex dtypes).
Tensor symm(const Tensor& a, const Tensor& b, const SymmOptions& options = {},
            const Tensor* out = nullptr);

/// Solves op(A) X = alpha * B, or X op(A) = alpha * B for Side::kRight, with a triangular A.
/// `out` may be b. A zero on the diagonal gives infinities and NaN, as in BLAS.
Tensor trsm(const Tensor& a, const Tensor& b, const TrsmOptions& options = {},
            const Tensor* out = nullptr);

}  // namespace cuop
