// The relatives of matmul, each a matmul of views.
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/matmul/matmul_internal.h"
#include "cuop/ops/output.h"

namespace cuop {

namespace {

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

Tensor tensordot(const Tensor& a, const Tensor& b, std::span<const int64_t> axes_a,
                 std::span<const int64_t> axes_b, const Tensor* out) {
  const char* const who = "tensordot";
  if (axes_a.size() != axes_b.size()) {
    throw ShapeError(cat(who, ": ", axes_a.size(), " axes of a were given and ", axes_b.size(),
                         " of b; they are paired one to one"));
  }
  std::vector<bool> is_summed_a(static_cast<size_t>(a.ndim()));
  std::vector<bool> is_summed_b(static_cast<size_t>(b.ndim()));
  std::vector<int64_t> summed_a, order_b;
  int64_t inner = 1;
  const auto claim = [&](std::vector<bool>& is_summed, int axis, const char* name) {
    if (is_summed[static_cast<size_t>(axis)]) {
      throw ShapeError(cat(who, ": axis ", axis, " of ", name, " was given twice"));
    }
    is_summed[static_cast<size_t>(axis)] = true;
  };
  for (size_t i = 0; i < axes_a.size(); ++i) {
    const int axis_a = normalize_axis(axes_a[i], a.ndim(), who);
    const int axis_b = normalize_axis(axes_b[i], b.ndim(), who);
    if (a.shape(axis_a) != b.shape(axis_b)) {
      throw ShapeError(cat(who, ": axis ", axes_a[i], " of a has ", a.shape(axis_a),
                           " elements, axis ", axes_b[i], " of b has ", b.shape(axis_b)));
    }
    claim(is_summed_a, axis_a, "a");
    claim(is_summed_b, axis_b, "b");
    summed_a.push_back(axis_a);
    order_b.push_back(axis_b);
    inner *= a.shape(axis_a);
  }
  Shape shape;
  std::vector<int64_t> order_a;
  int64_t rows = 1, columns = 1;
  for (int i = 0; i < a.ndim(); ++i) {
    if (is_summed_a[static_cast<size_t>(i)]) continue;
    order_a.push_back(i);
    shape.push_back(a.shape(i));
    rows *= a.shape(i);
  }
  for (int i = 0; i < b.ndim(); ++i) {
    if (is_summed_b[static_cast<size_t>(i)]) continue;
    order_b.push_back(i);
    shape.push_back(b.shape(i));
    columns *= b.shape(i);
  }
  order_a.insert(order_a.end(), summed_a.begin(), summed_a.end());
  return product_into(who, reshape(permute(a, order_a), {rows, inner}),
                      reshape(permute(b, order_b), {inner, columns}), false, shape, out);
}

}  // namespace cuop
