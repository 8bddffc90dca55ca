// Levels 2 and 3 as products of matmul: for the dtypes that BLAS lacks, and for callers that ask
// for plain loops.
#include "cuop/ops/blas/blas_kernels.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/dtype_lists.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/matmul/matmul_kernels.h"

namespace cuop::kernels {

namespace {

/// The whole of a symmetric matrix of which one triangle is read.
Tensor completed(const Tensor& a, Uplo uplo) {
  const Tensor whole = empty(a.shape(), a.dtype(), a.device());
  visit_dtype(NumericTypes{}, a.dtype(), "symm", [&]<class T>(TypeTag<T>) {
    const bool is_lower = uplo == Uplo::kLower;
    const int64_t order = a.shape(0);
    const int64_t row_step = a.strides()[is_lower ? 0 : 1];
    const int64_t column_step = a.strides()[is_lower ? 1 : 0];
    const T* const from = a.data<T>();
    T* const to = whole.data<T>();
    for (int64_t i = 0; i < order; ++i) {
      for (int64_t j = 0; j <= i; ++j) {
        to[i * order + j] = to[j * order + i] = from[i * row_step + j * column_step];
      }
    }
  });
  return whole;
}

}  // namespace

Product gemv_product(const Tensor& a, const Tensor& x, const GemvOptions& options,
                     const Tensor& y) {
  Product product;
  product.a = options.trans == Trans::kNone ? a : swap_axes(a, 0, 1);
  product.b = unsqueeze(x, 1);
  product.c = unsqueeze(y, 1);
  product.alpha = options.alpha;
  product.beta = options.beta;
  product.conjugate_a = options.trans == Trans::kConjTrans && is_complex(a.dtype());
  return product;
}

void gemv_product_cpu(const Tensor& a, const Tensor& x, const GemvOptions& options,
                      const Tensor& y) {
  Product product = gemv_product(a, x, options, y);
  matmul_cpu(product);
}

void gemv_loops_cpu(const Tensor& a, const Tensor& x, const GemvOptions& options, const Tensor& y) {
  Product product = gemv_product(a, x, options, y);
  matmul_loops_cpu(product);
}

void symm_product_cpu(const Tensor& a, const Tensor& b, const SymmOptions& options,
                      const Tensor& c) {
  const bool is_left = options.side == Side::kLeft;
  const Tensor whole = completed(a, options.uplo);
  Product product{is_left ? whole : b, is_left ? b : whole, c, options.alpha, options.beta};
  matmul_cpu(product);
}

}  // namespace cuop::kernels
