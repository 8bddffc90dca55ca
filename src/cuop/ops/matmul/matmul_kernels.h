// Internal: the matrix product after all checks, and the kernels that compute it.
#pragma once

#include "cuop/core/scalar.h"
#include "cuop/core/tensor.h"

namespace cuop::kernels {

/// c <- alpha * a @ b + beta * c. a [batch..., M, K], b [batch..., K, N], c [batch..., M, N] have
/// one dtype, one batch shape (stride 0 where broadcast) and any strides; c overlaps neither a nor
/// b. Nothing is empty but perhaps K. `conjugate_a` (complex dtypes) takes conj(a).
struct Product {
  Tensor a, b, c;
  Scalar alpha = 1;
  Scalar beta = 0;
  bool conjugate_a = false;
};

/// The entry for the CPU; the ones below are its parts by dtype. They may rearrange the product.
void matmul_cpu(Product& product);
void matmul_blas_cpu(Product& product);           ///< float32, float64, complex64, complex128
void matmul_half_cpu(const Product& product);     ///< float16, bfloat16
void matmul_integer_cpu(const Product& product);  ///< integers and bool
/// Plain loops, in tiles when the caller asks for a tile size (backend/kernel.h); the dtypes of
/// BLAS.
void matmul_loops_cpu(Product& product);

/// The entry for a GPU.
void matmul_cuda(Product& product);

/// The batch as one flat index: offsets in elements of matrix i of a, b and c.
class BatchOffsets {
 public:
  explicit BatchOffsets(const Product& product);
  int64_t count() const { return count_; }
  struct Offsets {
    int64_t a = 0, b = 0, c = 0;
  };
  Offsets operator()(int64_t index) const;

 private:
  Shape shape_;
  Strides a_, b_, c_;
  int64_t count_ = 1;
};

}  // namespace cuop::kernels
