#include "cuop/ops/blas/blas.h"

#include "cuop/backend/slot.h"
#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/ops/blas/blas_kernels.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/matmul/matmul_internal.h"
#include "cuop/ops/output.h"

namespace cuop {

namespace {

constexpr backend::Slot kScal{"scal", &kernels::axpy_cpu, &kernels::axpy_cuda};
constexpr backend::Slot kAxpy{"axpy", &kernels::axpy_cpu, &kernels::axpy_cuda};
constexpr backend::Slot kDot{"dot", &kernels::dot_cpu, &kernels::dot_cuda};
constexpr backend::Slot kGemv{"gemv", &kernels::gemv_cpu, &kernels::gemv_cuda,
                              &kernels::gemv_loops_cpu};
constexpr backend::Slot kSymm{"symm", &kernels::symm_cpu, &kernels::symm_cuda};
constexpr backend::Slot kTrsm{"trsm", &kernels::trsm_cpu, &kernels::trsm_cuda};

/// DTypeError for a dtype outside the list.
template <class Types>
void check_dtype(const char* who, Types types, DType dtype) {
  visit_dtype(types, dtype, who, [](auto) {});
}

void check_ndim(const char* who, const char* name, const Tensor& t, int ndim) {
  if (t.ndim() != ndim) {
    throw ShapeError(cat(who, ": ", name, " has shape ", t.shape(), "; it needs ", ndim,
                         ndim == 1 ? " dimension" : " dimensions"));
  }
}

/// a [n, n] whose order must be the rows (left) or columns (right) of b.
void check_square(const char* who, const Tensor& a, const Tensor& b, Side side) {
  check_ndim(who, "a", a, 2);
  check_ndim(who, "b", b, 2);
  if (a.shape(0) != a.shape(1)) {
    throw ShapeError(cat(who, ": a has shape ", a.shape(), "; it must be square"));
  }
  const int64_t order = b.shape(side == Side::kLeft ? 0 : 1);
  if (a.shape(0) != order) {
    throw ShapeError(cat(who, ": a of shape ", a.shape(), " on the ",
                         side == Side::kLeft ? "left" : "right", " of b of shape ", b.shape(),
                         " must be [", order, ", ", order, "]"));
  }
}

}  // namespace

Tensor scal(Scalar alpha, const Tensor& x, const Tensor* out) {
  trace::Span span("scal", "op");
  const Device device = common_device("scal", {&x, out});
  check_dtype("scal", NumericTypes{}, x.dtype());
  check_coefficient("scal", "alpha", alpha, x.dtype());
  const Tensor result = prepare_output("scal", out, x.shape(), x.dtype(), device);
  check_same_or_no_overlap("scal", result, x, "x");
  span.add_bytes(2 * x.nbytes());
  if (result.size() > 0) kScal(device, alpha, x, static_cast<const Tensor*>(nullptr), result);
  return result;
}

Tensor axpy(Scalar alpha, const Tensor& x, const Tensor& y, const Tensor* out) {
  trace::Span span("axpy", "op");
  const Device device = common_device("axpy", {&x, &y, out});
  const DType dtype = promote(x.dtype(), y.dtype());
  check_dtype("axpy", NumericTypes{}, dtype);
  check_coefficient("axpy", "alpha", alpha, dtype);
  if (!(x.shape() == y.shape())) {
    throw ShapeError(
        cat("axpy: x has shape ", x.shape(), ", y has ", y.shape(), "; the two must be equal"));
  }
  const Tensor result = prepare_output("axpy", out, x.shape(), dtype, device);
  check_same_or_no_overlap("axpy", result, x, "x");
  check_same_or_no_overlap("axpy", result, y, "y");
  span.add_bytes(x.nbytes() + y.nbytes() + result.nbytes());
  if (result.size() == 0) return result;
  const Tensor addend = cast(y, dtype);
  kAxpy(device, alpha, cast(x, dtype), &addend, result);
  return result;
}

DotValue dot(const Tensor& x, const Tensor& y, bool conjugate) {
  trace::Span span("dot", "op");
  const Device device = common_device("dot", {&x, &y});
  const DType dtype = promote(x.dtype(), y.dtype());
  check_dtype("dot", NumericTypes{}, dtype);
  check_ndim("dot", "x", x, 1);
  check_ndim("dot", "y", y, 1);
  if (x.shape(0) != y.shape(0)) {
    throw ShapeError(
        cat("dot: x has ", x.shape(0), " elements, y has ", y.shape(0), "; the two must be equal"));
  }
  span.add_bytes(x.nbytes() + y.nbytes());
  return kDot(device, cast(x, dtype), cast(y, dtype), conjugate);
}

Tensor gemm(const Tensor& a, const Tensor& b, const GemmOptions& options, const Tensor* out) {
  const auto prepared = [](const char* name, const Tensor& matrix, Trans trans) {
    if (matrix.ndim() != 2) {
      throw ShapeError(
          cat("gemm: ", name, " has shape ", matrix.shape(), "; it needs 2 dimensions"));
    }
    return trans == Trans::kConjTrans && is_complex(matrix.dtype()) ? conj(matrix) : matrix;
  };
  return product("gemm", prepared("a", a, options.trans_a), prepared("b", b, options.trans_b),
                 {options.trans_a != Trans::kNone, options.trans_b != Trans::kNone, options.alpha,
                  options.beta},
                 false, out);
}

Tensor gemv(const Tensor& a, const Tensor& x, const GemvOptions& options, const Tensor* out) {
  trace::Span span("gemv", "op");
  const Device device = common_device("gemv", {&a, &x, out});
  const DType dtype = promote(a.dtype(), x.dtype());
  check_dtype("gemv", NumericTypes{}, dtype);
  check_coefficient("gemv", "alpha", options.alpha, dtype);
  check_beta("gemv", options.beta, dtype, out);
  check_ndim("gemv", "a", a, 2);
  check_ndim("gemv", "x", x, 1);
  const bool is_plain = options.trans == Trans::kNone;
  if (x.shape(0) != a.shape(is_plain ? 1 : 0)) {
    throw ShapeError(cat("gemv: x has ", x.shape(0), " elements, a of shape ", a.shape(),
                         is_plain ? "" : " transposed", " needs ", a.shape(is_plain ? 1 : 0)));
  }
  const Tensor result = prepare_output("gemv", out, {a.shape(is_plain ? 0 : 1)}, dtype, device);
  check_no_overlap("gemv", result, a, "a");
  check_no_overlap("gemv", result, x, "x");
  span.add_bytes(a.nbytes() + x.nbytes() + result.nbytes());
  span.add_flops(2.0 * static_cast<double>(a.size()));
  if (result.size() == 0) return result;
  if (x.size() == 0 || is_zero(options.alpha)) {
    scale_result(result, options.beta);
  } else {
    kGemv(device, cast(a, dtype), cast(x, dtype), options, result);
  }
  return result;
}

Tensor symm(const Tensor& a, const Tensor& b, const SymmOptions& options, const Tensor* out) {
  trace::Span span("symm", "op");
  const Device device = common_device("symm", {&a, &b, out});
  const DType dtype = promote(a.dtype(), b.dtype());
  check_dtype("symm", NumericTypes{}, dtype);
  check_coefficient("symm", "alpha", options.alpha, dtype);
  check_beta("symm", options.beta, dtype, out);
  check_square("symm", a, b, options.side);
  const Tensor result = prepare_output("symm", out, b.shape(), dtype, device);
  check_no_overlap("symm", result, a, "a");
  check_no_overlap("symm", result, b, "b");
  span.add_flops(2.0 * static_cast<double>(b.size()) * static_cast<double>(a.shape(0)));
  if (result.size() == 0) return result;
  if (is_zero(options.alpha)) {
    scale_result(result, options.beta);
  } else {
    kSymm(device, cast(a, dtype), cast(b, dtype), options, result);
  }
  return result;
}

Tensor trsm(const Tensor& a, const Tensor& b, const TrsmOptions& options, const Tensor* out) {
  trace::Span span("trsm", "op");
  const Device device = common_device("trsm", {&a, &b, out});
  const DType dtype = promote(a.dtype(), b.dtype());
  check_dtype("trsm", InexactTypes{}, dtype);
  check_coefficient("trsm", "alpha", options.alpha, dtype);
  check_square("trsm", a, b, options.side);
  const Tensor result = prepare_output("trsm", out, b.shape(), dtype, device);
  check_no_overlap("trsm", result, a, "a");
  check_same_or_no_overlap("trsm", result, b, "b");
  span.add_flops(static_cast<double>(b.size()) * static_cast<double>(a.shape(0)));
  if (result.size() == 0) return result;
  if (is_zero(options.alpha)) {
    scale_result(result, 0);
  } else {
    kTrsm(device, cast(a, dtype), cast(b, dtype), options, result);
  }
  return result;
}

}  // namespace cuop
