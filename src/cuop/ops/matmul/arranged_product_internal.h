// Internal: which tensors BLAS can read where they lie, and products arranged so that it can.
#pragma once

#include <optional>

#include "cuop/core/linalg.h"
#include "cuop/core/tensor.h"
#include "cuop/ops/matmul/matmul_kernels.h"

namespace cuop::kernels {

/// How BLAS reads the matrices of a stack: row-major (kNone) or as the transpose of row-major ones
/// (kTrans), with `ld` elements from one stored row to the next.
struct Reading {
  Trans trans;
  int64_t ld;
};

/// Nothing when the last two axes have strides that BLAS cannot express. A matrix that can be read
/// both ways (a single row or column) is read row-major unless the transpose is preferred.
std::optional<Reading> reading(const Tensor& stack, bool prefer_transposed = false);

/// A view with what is repeated along batch axes there once.
Tensor distinct(const Tensor& stack);
/// A row-major copy of all matrices, with what is repeated along batch axes there once.
Tensor compact(const Tensor& stack);

/// How BLAS reads an arranged product. Its c is row-major with `ldc` elements from row to row.
struct ArrangedProduct {
  Reading a{}, b{};
  int64_t ldc = 0;
  Tensor target;  ///< where the result belongs when BLAS cannot write it there; else undefined
};

/// Merges the batch into the rows where that is one product, exchanges the operands where the
/// result lies transposed, and copies what BLAS cannot read. Not for products without inner size.
ArrangedProduct arrange(Product& product);
/// The first of these alone.
void merge_batch(Product& product);
/// Brings the result, which may have columns behind its own, to where it belongs.
void finish(const ArrangedProduct& arranged, const Product& product);

}  // namespace cuop::kernels
