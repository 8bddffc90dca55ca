#include "cuop/ops/matmul/matmul.h"

#include <cmath>
#include <optional>
#include <utility>

#include "cuop/backend/slot.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/jit/tensor_expr.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/matmul/matmul_internal.h"
#include "cuop/ops/matmul/matmul_kernels.h"
#include "cuop/ops/output.h"

namespace cuop {

namespace {

constexpr backend::Slot kMatmul{"matmul", &kernels::matmul_cpu, &kernels::matmul_cuda,
                                &kernels::matmul_loops_cpu};

/// The argument as a stack of matrices: a vector becomes a row (a) or a column (b).
Tensor as_matrices(const char* who, const Tensor& t, bool transposed, bool is_a) {
  if (t.ndim() == 0) {
    throw ShapeError(cat(who, ": ", is_a ? "a" : "b",
                         " is a scalar (shape ()); it needs at least 1 dimension; use multiply"));
  }
  if (t.ndim() == 1) {
    if (transposed) {
      throw ShapeError(cat(who, ": trans_", is_a ? "a" : "b", " was given for a vector of shape ",
                           t.shape(), "; it needs at least 2 dimensions"));
    }
    return unsqueeze(t, is_a ? 0 : 1);
  }
  return transposed ? swap_axes(t, -1, -2) : t;
}

Shape batch_of(const Tensor& matrices) {
  return Shape(
      std::span<const int64_t>(matrices.shape().begin(), static_cast<size_t>(matrices.ndim() - 2)));
}

Tensor with_batch(Tensor matrices, Shape batch) {
  if (matrices.ndim() == 2 && batch.empty()) return matrices;
  batch.push_back(matrices.shape(matrices.ndim() - 2));
  batch.push_back(matrices.shape(matrices.ndim() - 1));
  return broadcast_to(matrices, batch);
}

Shape batch_shape(const char* who, const Tensor& a, const Tensor& b) {
  if (a.ndim() == 2 && b.ndim() == 2) return {};
  try {
    return broadcast_shapes(batch_of(a), batch_of(b), who);
  } catch (const ShapeError&) {
    throw ShapeError(cat(who, ": the batch axes ", batch_of(a), " of a and ", batch_of(b),
                         " of b do not broadcast"));
  }
}

/// That of the result when `asked` is wanted.
DType result_dtype(const char* who, const Tensor& a, const Tensor& b,
                   const std::optional<DType>& asked) {
  const DType promoted = promote(a.dtype(), b.dtype());
  if (!asked || *asked == promoted) return promoted;
  const bool is_short = is_floating(promoted) && itemsize(promoted) == 2;
  if (is_short && *asked == DType::kFloat32) return *asked;
  throw DTypeError(cat(who, ": a result of ", *asked, " was asked for; that of ", a.dtype(),
                       " and ", b.dtype(), " is ", promoted, is_short ? " or float32" : ""));
}

void check_vector(const char* who, const Tensor& t, const char* name) {
  if (t.ndim() != 1) {
    throw ShapeError(cat(who, ": ", name, " has shape ", t.shape(), "; it needs 1 dimension"));
  }
}

/// The output seen under the shape in which the product is computed. Row-major order is kept, so a
/// view always exists for what `empty` gives; a strided output may need a copy.
Tensor product_into(const char* who, const Tensor& a, const Tensor& b, bool conjugate_a,
                    const Shape& shape, const Tensor* out) {
  const Tensor result =
      prepare_output(who, out, shape, promote(a.dtype(), b.dtype()), common_device(who, {&a, &b}));
  check_no_overlap(who, result, a, "a");
  check_no_overlap(who, result, b, "b");
  Shape computed = a.shape();
  computed.back() = b.shape().back();
  if (const auto layout = try_reshape(result.layout(), computed)) {
    const Tensor target = result.with_layout(*layout);
    product(who, a, b, {}, conjugate_a, &target);
  } else {
    copy_into(result, reshape(product(who, a, b, {}, conjugate_a, nullptr), shape));
  }
  return result;
}

}  // namespace

Tensor product(const char* who, const Tensor& a, const Tensor& b, const MatmulOptions& options,
               bool conjugate_a, const Tensor* out) {
  trace::Span span(who, "op");
  const Device device = common_device(who, {&a, &b, out});
  const DType operands = promote(a.dtype(), b.dtype());
  const DType dtype = result_dtype(who, a, b, options.dtype);
  kernels::Product p;
  p.alpha = options.alpha;
  p.beta = options.beta;
  check_coefficient(who, "alpha", p.alpha, dtype);
  check_beta(who, p.beta, dtype, out);
  p.a = as_matrices(who, a, options.trans_a.is_transposed(), true);
  p.b = as_matrices(who, b, options.trans_b.is_transposed(), false);
  const int64_t rows = p.a.shape(p.a.ndim() - 2);
  const int64_t inner = p.a.shape(p.a.ndim() - 1);
  const int64_t columns = p.b.shape(p.b.ndim() - 1);
  if (inner != p.b.shape(p.b.ndim() - 2)) {
    const auto op_text = [](TransLike op) { return op.is_transposed() ? " transposed" : ""; };
    throw ShapeError(cat(who, ": a of shape ", a.shape(), op_text(options.trans_a), " has rows of ",
                         inner, ", b of shape ", b.shape(), op_text(options.trans_b),
                         " has columns of ", p.b.shape(p.b.ndim() - 2), "; the two must agree"));
  }
  const Shape batch = batch_shape(who, p.a, p.b);
  Shape shape = batch;
  if (a.ndim() > 1) shape.push_back(rows);
  if (b.ndim() > 1) shape.push_back(columns);
  const Tensor result = prepare_output(who, out, shape, dtype, device);
  check_no_overlap(who, result, a, "a");
  check_no_overlap(who, result, b, "b");
  if (result.size() == 0) return result;
  if (span.is_open()) {
    span.add_flops(2.0 * static_cast<double>(result.size()) * static_cast<double>(inner));
    span.add_bytes(a.nbytes() + b.nbytes() + result.nbytes());
  }

  if (inner == 0 || is_zero(p.alpha)) {
    scale_result(result, p.beta);
    return result;
  }
  if (p.a.dtype() != operands) p.a = cast(p.a, operands);
  if (p.b.dtype() != operands) p.b = cast(p.b, operands);
  if (options.trans_b.value() == Trans::kConjTrans && is_complex(dtype)) p.b = conj(p.b);
  p.a = with_batch(std::move(p.a), batch);
  p.b = with_batch(std::move(p.b), batch);
  p.c = result;
  if (a.ndim() == 1) p.c = unsqueeze(p.c, p.c.ndim() - (b.ndim() > 1 ? 1 : 0));
  if (b.ndim() == 1) p.c = unsqueeze(p.c, -1);
  const bool is_conjugate = conjugate_a || options.trans_a.value() == Trans::kConjTrans;
  p.conjugate_a = is_conjugate && is_complex(dtype);
  kMatmul(device, p);
  return result;
}

Tensor matmul(const Tensor& a, const Tensor& b, const MatmulOptions& options, const Tensor* out) {
  return product("matmul", a, b, options, false, out);
}

bool is_zero(const Scalar& value) { return value.to_complex() == std::complex<double>(0); }

void scale_result(const Tensor& c, const Scalar& beta) {
  if (is_zero(beta) && c.device().is_cpu()) {
    jit::TensorExpr expr;  // without memory for a number, which callers have not counted
    expr.write(expr.number(0, c.dtype()), c);
  } else if (is_zero(beta)) {
    fill(c, 0);
  } else if (!is_bool(c.dtype()) && beta.to_complex() != std::complex<double>(1)) {
    multiply(c, beta, &c);
  }
}

void check_coefficient(const char* who, const char* name, const Scalar& value, DType dtype) {
  if (value.is_complex() && !is_complex(dtype)) {
    throw ExecutionError(cat(who, ": ", name, " is complex, the result is ", dtype));
  }
  if (!is_integer(dtype) && !is_bool(dtype)) return;
  if (value.is_floating() && value.to_double() != std::nearbyint(value.to_double())) {
    throw ExecutionError(cat(who, ": ", name, " is ", value.to_double(), ", the result is ", dtype,
                             ", which needs a whole number"));
  }
  if (!value.fits(dtype)) {
    throw DTypeError(cat(who, ": ", name, " is ", value, ", which does not fit dtype ", dtype));
  }
}

void check_beta(const char* who, const Scalar& beta, DType dtype, const Tensor* out) {
  check_coefficient(who, "beta", beta, dtype);
  if (!is_zero(beta) && (out == nullptr || !out->is_defined())) {
    throw ExecutionError(cat(who, ": beta is not 0, but there is no output to scale; pass out"));
  }
}

Tensor batch_matmul(const Tensor& a, const Tensor& b, const MatmulOptions& options,
                    const Tensor* out) {
  const char* const who = "batch_matmul";
  bool fits = a.ndim() >= 3 && a.ndim() == b.ndim();
  for (int i = 0; fits && i + 2 < a.ndim(); ++i) fits = a.shape(i) == b.shape(i);
  if (!fits) {
    throw ShapeError(cat(who, ": a has shape ", a.shape(), " and b ", b.shape(),
                         "; both need the same number of dimensions, at least 3, and equal leading "
                         "axes; matmul broadcasts them"));
  }
  return product(who, a, b, options, false, out);
}

Tensor outer(const Tensor& a, const Tensor& b, const Tensor* out) {
  check_vector("outer", a, "a");
  check_vector("outer", b, "b");
  return product("outer", unsqueeze(a, 1), unsqueeze(b, 0), {}, false, out);
}

Tensor vecdot(const Tensor& a, const Tensor& b, int64_t axis, const Tensor* out) {
  const char* const who = "vecdot";
  if (a.ndim() == 0 || b.ndim() == 0) {
    throw ShapeError(cat(who, ": the shapes are ", a.shape(), " and ", b.shape(),
                         "; both need at least 1 dimension"));
  }
  const Tensor x = move_axis(a, normalize_axis(axis, a.ndim(), who) - a.ndim(), -1);
  const Tensor y = move_axis(b, normalize_axis(axis, b.ndim(), who) - b.ndim(), -1);
  if (x.shape().back() != y.shape().back()) {
    throw ShapeError(cat(who, ": axis ", axis, " has ", x.shape().back(),
                         " elements in a of shape ", a.shape(), " and ", y.shape().back(),
                         " in b of shape ", b.shape()));
  }
  const Shape common = broadcast_shapes(x.shape(), y.shape(), who);
  Shape shape = common;
  shape.erase(shape.ndim() - 1);
  return product_into(who, unsqueeze(broadcast_to(x, common), -2),
                      unsqueeze(broadcast_to(y, common), -1), true, shape, out);
}

}  // namespace cuop
