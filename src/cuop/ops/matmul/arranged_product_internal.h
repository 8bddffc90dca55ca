// Internal: a product arranged so that BLAS can run it where its operands lie.
#pragma once

#include "cuop/ops/matmul/blas_reading_internal.h"
#include "cuop/ops/matmul/matmul_kernels.h"

namespace cuop::kernels {

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
/// Brings the result to where it belongs.
void finish(const ArrangedProduct& arranged, const Product& product);

}  // namespace cuop::kernels
