// The BLAS operations on tensors, for floating, complex and integer dtypes (trsm, which divides,
// not for integers). float16 and bfloat16 are computed in float32 and rounded once; integers wrap,
// and their coefficients must be whole numbers that the dtype holds.
#pragma once

#include <complex>
#include <variant>

#include "cuop/core/linalg.h"
#include "cuop/core/scalar.h"
#include "cuop/core/tensor.h"

namespace cuop {

/// alpha * x of any shape; `out` may be x.
Tensor scal(Scalar alpha, const Tensor& x, const Tensor* out = nullptr);

/// alpha * x + y for equal shapes, one rounding a product and one a sum; `out` may be x
/// or y.
Tensor axpy(Scalar alpha, const Tensor& x, const Tensor& y, const Tensor* out = nullptr);

/// The element that a dot product amounts to: int64_t or uint64_t for signed or unsigned integers,
/// double for floating and std::complex<double> for complex dtypes.
using DotValue = std::variant<int64_t, uint64_t, double, std::complex<double>>;

/// Sum of x[i] * y[i] (of conj(x[i]) * y[i] when `conjugate`) over two vectors, in the dtype that
/// both promote to. Floating and complex dtypes accumulate in float64; integers wrap in their
/// dtype. The result does not depend on the number of threads.
DotValue dot(const Tensor& x, const Tensor& y, bool conjugate = false);

/// op(A), op(B): as they are, transposed, or conjugated and transposed.
struct GemmOptions {
  Trans trans_a = Trans::kNone;
  Trans trans_b = Trans::kNone;
  Scalar alpha = 1;
  Scalar beta = 0;  ///< not 0 needs `out`
};
/// C <- alpha * op(A) op(B) + beta * C for matrices op(A) [M, K], op(B) [K, N]; dtypes and errors
/// as matmul, which also takes vectors and batches.
Tensor gemm(const Tensor& a, const Tensor& b, const GemmOptions& options = {},
            const Tensor* out = nullptr);

struct GemvOptions {
  Trans trans = Trans::kNone;
  Scalar alpha = 1;
  Scalar beta = 0;  ///< not 0 needs `out`
};
/// y <- alpha * op(A) x + beta * y for A [M, N].
Tensor gemv(const Tensor& a, const Tensor& x, const GemvOptions& options = {},
            const Tensor* out = nullptr);

struct SymmOptions {
  Side side = Side::kLeft;
  Uplo uplo = Uplo::kUpper;
  Scalar alpha = 1;
  Scalar beta = 0;  ///< not 0 needs `out`
};
/// C <- alpha * A B + beta * C, or B A for Side::kRight, with a symmetric A of which one triangle
/// is read (symmetric, not Hermitian, for complex dtypes).
Tensor symm(const Tensor& a, const Tensor& b, const SymmOptions& options = {},
            const Tensor* out = nullptr);

struct TrsmOptions {
  Side side = Side::kLeft;
  Uplo uplo = Uplo::kLower;
  Trans trans = Trans::kNone;
  Diag diag = Diag::kNonUnit;
  Scalar alpha = 1;
};
/// Solves op(A) X = alpha * B, or X op(A) = alpha * B for Side::kRight, with a triangular A.
/// `out` may be b. A zero on the diagonal gives infinities and NaN, as in BLAS.
Tensor trsm(const Tensor& a, const Tensor& b, const TrsmOptions& options = {},
            const Tensor* out = nullptr);

}  // namespace cuop
