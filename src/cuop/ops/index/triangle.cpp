#include "cuop/ops/index/triangle.h"

#include <algorithm>

#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/output.h"

namespace cuop {

namespace {

/// 0, 1, ... beginning with `first`, as a column or as a row.
Tensor numbers(int64_t first, int64_t count, const Shape& shape, Device device) {
  return reshape(arange(first, first + count, 1, DType::kInt64, device), shape);
}

Tensor triangle(const char* who, const Tensor& x, int64_t k, bool is_lower, const Tensor* out) {
  const trace::Span span(who, "op");
  if (x.ndim() < 2) {
    throw ShapeError(cat(who, ": x has shape ", x.shape(), "; it needs at least 2 dimensions"));
  }
  const Tensor result = prepare_output(who, out, x.shape(), x.dtype(), x.device());
  check_same_or_no_overlap(who, result, x, "x");
  const int64_t rows = x.shape(x.ndim() - 2), columns = x.shape(x.ndim() - 1);
  // Diagonals beyond the corners are all alike, and do not overflow.
  const int64_t diagonal = std::clamp(k, -rows - 1, columns + 1);
  const Tensor last = numbers(diagonal, rows, {rows, 1}, x.device());
  const Tensor column = numbers(0, columns, {1, columns}, x.device());
  const Tensor is_kept = is_lower ? less_equal(column, last) : greater_equal(column, last);
  return where(is_kept, x, Scalar(false), &result);  // of any dtype 0, which decides nothing
}

}  // namespace

Tensor tril(const Tensor& x, int64_t k, const Tensor* out) {
  return triangle("tril", x, k, true, out);
}

Tensor triu(const Tensor& x, int64_t k, const Tensor* out) {
  return triangle("triu", x, k, false, out);
}

}  // namespace cuop
