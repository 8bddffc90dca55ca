// Level 2 on a GPU by a kernel of our own, level 3 by cuBLAS and, for integers, by our own product.
#include "cuop/backend/cuda/cublas.h"
#include "cuop/ops/blas/matrix_operands_internal.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/matmul/integer_product_cuda_internal.h"
#include "cuop/ops/matmul/matrix_vector_cuda_internal.h"

namespace cuop::kernels {

namespace {

/// The symmetric matrix first and its lower triangle below: B A is (A B^T)^T.
Product symmetric_product(const Tensor& a, const Tensor& b, const SymmOptions& options,
                          const Tensor& c) {
  const bool is_left = options.side == Side::kLeft;
  const auto turned = [](const Tensor& t, bool is_turned) {
    return is_turned ? swap_axes(t, 0, 1) : t;
  };
  return {turned(a, options.uplo == Uplo::kUpper), turned(b, !is_left), turned(c, !is_left),
          options.alpha, options.beta};
}

void symm_library(const Tensor& a, const Tensor& b, const SymmOptions& options, const Tensor& c) {
  const Stream stream = current_stream(c.device());
  visit_dtype(FloatComplexTypes{}, c.dtype(), "symm", [&]<class T>(TypeTag<T>) {
    symm_by<T>(a, b, options, c, [&](const auto& call) { backend::cuda::symm<T>(call, stream); });
  });
}

}  // namespace

void gemv_cuda(const Tensor& a, const Tensor& x, const GemvOptions& options, const Tensor& y) {
  matrix_vector_cuda(gemv_product(a, x, options, y));
}

void symm_cuda(const Tensor& a, const Tensor& b, const SymmOptions& options, const Tensor& c) {
  if (is_integer(c.dtype())) {
    return integer_product_cuda(symmetric_product(a, b, options, c), true);
  }
  compute_wide(a, b, c, [&](const Tensor& wide_a, const Tensor& wide_b, const Tensor& wide_c) {
    if (wide_c.dtype() != c.dtype() && !is_zero(options.beta)) copy_into(wide_c, c);
    symm_library(wide_a, wide_b, options, wide_c);
  });
}

void trsm_cuda(const Tensor& a, const Tensor& b, const TrsmOptions& options, const Tensor& x) {
  const Stream stream = current_stream(x.device());
  compute_wide(a, b, x, [&](const Tensor& wide_a, const Tensor& wide_b, const Tensor& wide_x) {
    visit_dtype(FloatComplexTypes{}, wide_x.dtype(), "trsm", [&]<class T>(TypeTag<T>) {
      trsm_by<T>(wide_a, wide_b, options, wide_x,
                 [&](const auto& call) { backend::cuda::trsm<T>(call, stream); });
    });
  });
}

}  // namespace cuop::kernels
