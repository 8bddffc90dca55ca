// Sparse matrices from and to dense ones, and their products.
#pragma once

#include "cuop/ops/sparse/sparse_matrix.h"

namespace cuop {

/// The elements of a matrix that are not zero; NaN is one of them, -0 is not. float32 and float64;
/// DTypeError, ShapeError.
SparseMatrix to_sparse(const Tensor& x, SparseLayout layout = SparseLayout::kCsr);
/// All of it, row-major.
Tensor to_dense(const SparseMatrix& x);
/// The same matrix in this layout; shares what it can.
SparseMatrix in_layout(const SparseMatrix& x, SparseLayout layout);
/// The same on a device; copies only when it is not there.
SparseMatrix to_device(const SparseMatrix& x, Device device);

/// a @ b for b [K, N] or [K], in the promoted dtype of both, float32 or float64. Each element is
/// the sum over a row of a in its order, the same on any number of threads and in every run; on a
/// GPU by cuSPARSE. Errors as those of cuop::matmul, DeviceError where a GPU has no cuSPARSE.
Tensor matmul(const SparseMatrix& a, const Tensor& b, const Tensor* out = nullptr);

}  // namespace cuop
