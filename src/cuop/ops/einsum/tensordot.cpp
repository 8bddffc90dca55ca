#include "cuop/ops/einsum/tensordot.h"

#include <algorithm>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/einsum/pair_product_internal.h"
#include "cuop/ops/output.h"

namespace cuop {

namespace {

constexpr const char* kTensordot = "tensordot";

}  // namespace

TensordotNames tensordot_names(const Shape& a, const Shape& b, std::span<const int64_t> axes_a,
                               std::span<const int64_t> axes_b) {
  if (axes_a.size() != axes_b.size()) {
    throw ShapeError(cat(kTensordot, ": ", axes_a.size(), " axes of a were given and ",
                         axes_b.size(), " of b; they are paired one to one"));
  }
  TensordotNames names;
  for (int i = 0; i < a.ndim(); ++i) names.a.push_back(i);
  for (int i = 0; i < b.ndim(); ++i) names.b.push_back(a.ndim() + i);
  std::vector<bool> is_summed(static_cast<size_t>(a.ndim()));
  for (size_t i = 0; i < axes_a.size(); ++i) {
    const int axis_a = normalize_axis(axes_a[i], a.ndim(), kTensordot);
    const int axis_b = normalize_axis(axes_b[i], b.ndim(), kTensordot);
    if (a[axis_a] != b[axis_b]) {
      throw ShapeError(cat(kTensordot, ": axis ", axes_a[i], " of a has ", a[axis_a],
                           " elements, axis ", axes_b[i], " of b has ", b[axis_b]));
    }
    if (is_summed[static_cast<size_t>(axis_a)]) {
      throw ShapeError(cat(kTensordot, ": axis ", axis_a, " of a was given twice"));
    }
    if (names.b[static_cast<size_t>(axis_b)] < a.ndim()) {
      throw ShapeError(cat(kTensordot, ": axis ", axis_b, " of b was given twice"));
    }
    is_summed[static_cast<size_t>(axis_a)] = true;
    names.b[static_cast<size_t>(axis_b)] = axis_a;
  }
  for (const int name : names.a) {
    if (!is_summed[static_cast<size_t>(name)]) names.result.push_back(name);
  }
  for (const int name : names.b) {
    if (name >= a.ndim()) names.result.push_back(name);
  }
  return names;
}

Tensor tensordot(const Tensor& a, const Tensor& b, std::span<const int64_t> axes_a,
                 std::span<const int64_t> axes_b, const Tensor* out) {
  trace::Span span(kTensordot, "op");
  const Device device = common_device(kTensordot, {&a, &b, out});
  const TensordotNames names = tensordot_names(a.shape(), b.shape(), axes_a, axes_b);
  Shape shape;
  for (const int name : names.result) {
    shape.push_back(name < a.ndim() ? a.shape(name) : b.shape(name - a.ndim()));
  }
  const DType dtype = promote(a.dtype(), b.dtype());
  const Tensor result = prepare_output(kTensordot, out, shape, dtype, device);
  check_no_overlap(kTensordot, result, a, "a");
  check_no_overlap(kTensordot, result, b, "b");
  pairwise::multiply_pair({cast(a, dtype), names.a}, {cast(b, dtype), names.b}, names.result,
                          result);
  return result;
}

PairedAxes last_and_first_axes(int64_t count, int ndim_a, int ndim_b) {
  if (count < 0 || count > std::min(ndim_a, ndim_b)) {
    throw ShapeError(cat(kTensordot, ": axes is ", count, "; tensors of ", ndim_a, " and ", ndim_b,
                         " dimensions have 0 to ", std::min(ndim_a, ndim_b), " to pair"));
  }
  PairedAxes axes;
  for (int64_t i = 0; i < count; ++i) {
    axes.of_a.push_back(ndim_a - count + i);
    axes.of_b.push_back(i);
  }
  return axes;
}

}  // namespace cuop
