#include "cuop/ops/index/gather.h"

#include <algorithm>

#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/index/offsets_internal.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/output.h"
#include "cuop/ops/reduce/reduce.h"

namespace cuop {

namespace {

void check_integers(const char* who, const Tensor& indices) {
  if (!is_integer(indices.dtype())) {
    throw DTypeError(cat(who, ": the indices must be integers, given ", indices.dtype()));
  }
}

void check_mask(const char* who, const Tensor& mask) {
  if (!is_bool(mask.dtype())) {
    throw DTypeError(cat(who, ": the mask must be bool, given ", mask.dtype()));
  }
}

/// Every element that `indices` names along `axis`, the other axes walking with it.
struct AlongAxis {
  Tensor view;
  Picks picks;
};

AlongAxis pick_along_axis(const char* who, const Tensor& x, const Tensor& indices, int64_t axis) {
  check_integers(who, indices);
  common_device(who, {&x, &indices});
  if (x.ndim() != indices.ndim()) {
    throw ShapeError(cat(who, ": x has ", x.ndim(), " dimensions, the indices have ",
                         indices.ndim(), "; they must be equal"));
  }
  const int at = normalize_axis(axis, x.ndim(), who);
  Shape x_rest = x.shape(), index_rest = indices.shape();
  x_rest[at] = index_rest[at] = 1;
  Shape wide = broadcast_shapes(x_rest, index_rest, who);
  wide[at] = x.shape(at);
  const Tensor view = broadcast_to(x, wide);
  std::vector<Offsets> parts{index_offsets(who, view, at, indices)};
  std::vector<int> axes;
  for (int i = 0; i < view.ndim(); ++i) {
    axes.push_back(i);
    if (i == at) continue;
    Shape shape = Dims::filled(view.ndim(), 1);
    shape[i] = view.shape(i);
    parts.push_back({reshape(all_offsets(view, i).table, shape), false});
  }
  return {view, combine_offsets(view, parts, axes, 0)};
}

Tensor along_axis(const char* who, const Tensor& x, const Tensor& indices, int64_t axis,
                  const Tensor* out) {
  const trace::Span span(who, "op");
  const AlongAxis along = pick_along_axis(who, x, indices, axis);
  if (out == nullptr) return gather_picks(along.view, along.picks, nullptr);
  const Tensor result = prepare_output(who, out, along.picks.result_shape, x.dtype(), x.device());
  check_no_overlap(who, result, x, "x");
  return gather_picks(along.view, along.picks, &result);
}

}  // namespace

Tensor take(const Tensor& x, const Tensor& indices, std::optional<int64_t> axis,
            const Tensor* out) {
  const trace::Span span("take", "op");
  check_integers("take", indices);
  const Device device = common_device("take", {&x, &indices});
  if (!axis) return take(reshape(x, {x.size()}), indices, 0, out);
  const int at = normalize_axis(*axis, x.ndim(), "take");
  const Offsets part = index_offsets("take", x, at, indices);
  const int axes[] = {at};
  const Picks picks = combine_offsets(x, {&part, 1}, axes, at);
  if (out == nullptr) return gather_picks(x, picks, nullptr);
  const Tensor result = prepare_output("take", out, picks.result_shape, x.dtype(), device);
  check_no_overlap("take", result, x, "x");
  return gather_picks(x, picks, &result);
}

Tensor take_along_axis(const Tensor& x, const Tensor& indices, int64_t axis, const Tensor* out) {
  return along_axis("take_along_axis", x, indices, axis, out);
}

Tensor gather(const Tensor& x, int64_t axis, const Tensor& indices, const Tensor* out) {
  const int at = normalize_axis(axis, x.ndim(), "gather");
  Tensor reached = x;
  for (int i = 0; i < std::min(x.ndim(), indices.ndim()); ++i) {
    if (i == at) continue;
    if (indices.shape(i) > x.shape(i)) {
      throw ShapeError(cat("gather: the indices have shape ", indices.shape(), ", x ", x.shape(),
                           "; only along axis ", at, " may they have more elements than x"));
    }
    reached = slice(reached, i, 0, indices.shape(i));
  }
  return along_axis("gather", reached, indices, at, out);
}

void put_along_axis(const Tensor& x, const Tensor& indices, const Tensor& values, int64_t axis) {
  const trace::Span span("put_along_axis", "op");
  check_writable("put_along_axis", x);
  common_device("put_along_axis", {&x, &values});
  const AlongAxis along = pick_along_axis("put_along_axis", x, indices, axis);
  if (along.view.shape() != x.shape()) {
    throw ShapeError(cat("put_along_axis: indices of shape ", indices.shape(),
                         " do not fit x of shape ", x.shape()));
  }
  scatter_picks(along.view, along.picks, values, "put_along_axis: values");
}

Tensor masked_select(const Tensor& x, const Tensor& mask) {
  const trace::Span span("masked_select", "op");
  check_mask("masked_select", mask);
  common_device("masked_select", {&x, &mask});
  const Layout wide = broadcast_to(mask.layout(), x.shape(), "masked_select: mask");
  const Offsets part = mask_offsets(x, 0, mask.with_layout(wide));
  const std::vector<int> axes = normalize_axes({}, x.ndim(), "masked_select");
  return gather_picks(x, combine_offsets(x, {&part, 1}, axes, 0), nullptr);
}

Tensor masked_fill(const Tensor& x, const Tensor& mask, const Tensor& value, const Tensor* out) {
  const trace::Span span("masked_fill", "op");
  check_mask("masked_fill", mask);
  const Device device = common_device("masked_fill", {&x, &mask, &value});
  broadcast_to(mask.layout(), x.shape(), "masked_fill: mask");
  broadcast_to(value.layout(), x.shape(), "masked_fill: value");
  const Tensor result = prepare_output("masked_fill", out, x.shape(), x.dtype(), device);
  check_same_or_no_overlap("masked_fill", result, x, "x");
  check_no_overlap("masked_fill", result, mask, "mask");
  check_no_overlap("masked_fill", result, value, "value");
  return where(mask, cast(value, x.dtype()), x, &result);
}

std::vector<Tensor> nonzero(const Tensor& x) {
  const trace::Span span("nonzero", "op");
  if (x.ndim() == 0) {
    throw ShapeError("nonzero: a tensor of 0 dimensions has no positions; reshape it to (1,)");
  }
  const Tensor mask = cast(x, DType::kBool);
  const int64_t count = count_true(mask);
  // The position along one axis is the offset in a layout whose only stride is that axis's.
  std::vector<Tensor> result;
  for (int i = 0; i < x.ndim(); ++i) {
    Layout layout{x.shape(), Dims::filled(x.ndim(), 0), 0};
    layout.strides[i] = 1;
    result.push_back(mask_offsets(x.with_layout(layout), 0, mask, count).table);
  }
  return result;
}

int64_t count_nonzero(const Tensor& x) {
  const trace::Span span("count_nonzero", "op");
  return count_true(cast(x, DType::kBool));
}

Tensor count_nonzero(const Tensor& x, Axes axes, bool keepdims) {
  const trace::Span span("count_nonzero", "op");
  normalize_axes(axes, x.ndim(), "count_nonzero");
  return sum(cast(x, DType::kBool), axes, keepdims);
}

}  // namespace cuop
