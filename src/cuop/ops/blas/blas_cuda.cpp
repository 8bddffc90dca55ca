// Level 2 on a GPU by a kernel of our own, level 3 by cuBLAS and, for integers, by our own product.
#include "cuop/backend/cuda/cublas.h"
#include "cuop/jit/tensor_expr.h"
#include "cuop/ops/blas/blas_kernels.h"
#include "cuop/ops/blas/matrix_operands_internal.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/matmul/matmul_kernels.h"

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

void trsm_library(const Tensor& a, const Tensor& b, const TrsmOptions& options, const Tensor& x) {
  const Stream stream = current_stream(x.device());
  visit_dtype(FloatComplexTypes{}, x.dtype(), "trsm", [&]<class T>(TypeTag<T>) {
    trsm_by<T>(a, b, options, x, [&](const auto& call) { backend::cuda::trsm<T>(call, stream); });
  });
}

/// Up to here cuBLAS solves complex128. Beyond its own block of 64 it multiplies by cuBLASLt, whose
/// code ended the process at an order of 129 each time (13.0 on an H200; other dtypes do not).
constexpr int64_t kLargestTriangle = 64;

/// Solves in x, which holds B: the half of the unknowns that needs no others, then, when the other
/// equations have lost it, the rest.
void trsm_by_halves(const Tensor& a, const TrsmOptions& options, const Tensor& x) {
  const int64_t order = a.shape(0), half = order / 2;
  if (order <= kLargestTriangle) return trsm_library(a, x, options, x);
  const bool is_left = options.side == Side::kLeft, is_lower = options.uplo == Uplo::kLower;
  const auto part = [&](const Tensor& t, int64_t axis, bool is_second) {
    return slice(t, axis, is_second ? half : 0, is_second ? order : half);
  };
  const auto block = [&](bool second_row, bool second_column) {
    return part(part(a, 0, second_row), 1, second_column);
  };
  // op(A) is lower, or upper; from the left a lower one gives the first unknowns first.
  const bool is_second_first = (is_lower == (options.trans == Trans::kNone)) != is_left;
  const int64_t axis = is_left ? 0 : 1;
  const Tensor known = part(x, axis, is_second_first), rest = part(x, axis, !is_second_first);
  trsm_by_halves(block(is_second_first, is_second_first), options, known);
  Tensor between = block(is_lower, !is_lower);
  if (options.trans != Trans::kNone) between = swap_axes(between, 0, 1);
  if (options.trans == Trans::kConjTrans) between = conj(between);
  Product update{is_left ? between : known, is_left ? known : between, rest, -1, options.alpha};
  matmul_cuda(update);
  TrsmOptions further = options;
  further.alpha = 1;
  trsm_by_halves(block(!is_second_first, !is_second_first), further, rest);
}

/// The accumulator of a dot product: integers add modulo 2^64, exact in the bits of their dtype.
DType sum_dtype(DType dtype) {
  if (is_complex(dtype)) return DType::kComplex128;
  if (is_floating(dtype)) return DType::kFloat64;
  return is_signed_integer(dtype) ? DType::kInt64 : DType::kUInt64;
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
  compute_wide(a, b, x, [&](const Tensor& wide_a, const Tensor& wide_b, const Tensor& wide_x) {
    const bool is_whole = wide_x.dtype() != DType::kComplex128 || a.shape(0) <= kLargestTriangle;
    if (is_whole) return trsm_library(wide_a, wide_b, options, wide_x);
    copy_into(wide_x, wide_b);  // nothing when they are one
    trsm_by_halves(wide_a, options, wide_x);
  });
}

void axpy_cuda(const Scalar& alpha, const Tensor& x, const Tensor* y, const Tensor& out) {
  const DType dtype = compute_dtype(out.dtype());  // 16-bit floats are rounded by the cast alone
  jit::TensorExpr expr;
  const int factor = expr.number(alpha, dtype);
  int value = expr.op("multiply", {factor, expr.cast(expr.leaf(x), dtype)});
  if (y != nullptr) value = expr.op("add", {value, expr.cast(expr.leaf(*y), dtype)});
  expr.write(value, out);
}

DotValue dot_cuda(const Tensor& x, const Tensor& y, bool conjugate) {
  const DType dtype = sum_dtype(x.dtype());
  const Tensor sum = zeros({}, dtype, x.device());
  if (x.size() > 0) {
    jit::TensorExpr expr;
    int left = expr.cast(expr.leaf(x), dtype);
    if (conjugate && is_complex(dtype)) left = expr.op("conj", {left});
    const int product = expr.op("multiply", {left, expr.cast(expr.leaf(y), dtype)});
    expr.reduce(ReduceKind::kSum, product, x.shape(), 1, sum);
  }
  const Tensor host = to_device(sum, kCpu);  // the answer is a number of the host: this waits
  if (is_complex(dtype)) return *host.data<std::complex<double>>();
  if (is_floating(dtype)) return *host.data<double>();
  const Tensor wrapped = cast(cast(host, x.dtype()), dtype);
  if (is_signed_integer(dtype)) return *wrapped.data<int64_t>();
  return *wrapped.data<uint64_t>();
}

}  // namespace cuop::kernels
