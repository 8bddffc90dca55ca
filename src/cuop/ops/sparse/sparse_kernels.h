// Internal: the kernels of sparse matrices, after all checks.
#pragma once

#include <cstdint>

#include "cuop/jit/cuda/kernel_fwd.h"
#include "cuop/ops/sparse/sparse_matrix.h"

namespace cuop::kernels {

/// The CSR form of a matrix of any strides, with indices of this dtype.
SparseMatrix compress_cpu(const Tensor& x, DType index_dtype);
SparseMatrix compress_cuda(const Tensor& x, DType index_dtype);

/// Puts the values into row-major zeros.
void expand_cpu(const SparseMatrix& csr, const Tensor& zeros);
void expand_cuda(const SparseMatrix& csr, const Tensor& zeros);

/// The row of each of `count` values from the positions of the rows' first ones.
Tensor row_numbers_cpu(const Tensor& positions, int64_t count);
Tensor row_numbers_cuda(const Tensor& positions, int64_t count);
/// The way back: of `rows` rows.
Tensor row_positions_cpu(const Tensor& row_numbers, int64_t rows);
Tensor row_positions_cuda(const Tensor& row_numbers, int64_t rows);

/// c = a b, all of one dtype, a in CSR, nothing of c empty. Rows of b and c lie without gaps, any
/// distance apart.
void sparse_product_cpu(const SparseMatrix& a, const Tensor& b, const Tensor& c);
void sparse_product_cuda(const SparseMatrix& a, const Tensor& b, const Tensor& c);

/// A CSR matrix times a dense one; strides in elements.
template <class T, class Index>
struct RowProduct {
  const Index* positions;
  const Index* columns;
  const T* values;
  const T* b;
  int64_t b_stride;
  int64_t depth;  ///< rows of b
  T* c;
  int64_t c_stride;
};
/// A part of c: rows and columns.
struct ProductPart {
  int64_t first_row, end_row;
  int64_t first_column, width;  ///< of at most a strip
};
/// The loops of one instruction set.
template <class T, class Index>
struct SparseLoop {
  /// Reads b where it lies.
  void (*direct)(const RowProduct<T, Index>& product, const ProductPart& part);
  /// Copies `panel_rows` rows of a strip of b at a time to `panel`, where they lie side by side in
  /// the second-level cache; `next` has room for a number a row of the part.
  void (*packed)(const RowProduct<T, Index>& product, const ProductPart& part, T* panel,
                 Index* next);
};
template <class T>
struct SparseLoops {
  int64_t strip;       ///< columns whose sums stay in registers
  int64_t panel_rows;  ///< of b
  SparseLoop<T, int32_t> narrow;
  SparseLoop<T, int64_t> wide;
};
template <class Level, class T>
const SparseLoops<T>& sparse_loops();

enum class RowSearchKind : uint8_t { kNumbers, kPositions };
jit::TextKernel row_search_kernel(DType index_dtype, RowSearchKind search);

}  // namespace cuop::kernels
