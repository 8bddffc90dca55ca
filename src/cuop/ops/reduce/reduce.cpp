#include "cuop/ops/reduce/reduce.h"

#include <cmath>
#include <optional>

#include "cuop/backend/slot.h"
#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/jit/recording.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/output.h"
#include "cuop/ops/reduce/reduce_kernels.h"

namespace cuop {

namespace {

using ReduceKernel = void(const char*, const Reduction&, const Tensor&, const std::vector<int>&,
                          const Tensor&);
constexpr backend::Slot<ReduceKernel> kReduceSlot{"reduce", kernels::reduce_cpu,
                                                  kernels::reduce_cuda};
constexpr backend::Slot kArgSlot{"argmax", &kernels::arg_reduce_cpu, &kernels::arg_reduce_cuda};
constexpr backend::Slot kCumsumSlot{"cumsum", &kernels::cumsum_cpu, &kernels::cumsum_cuda};

/// How many elements each result is made of.
int64_t count_along(const std::vector<int>& axes, const Shape& shape) {
  int64_t count = 1;
  for (const int axis : axes) count *= shape[axis];
  return count;
}

/// The result of x reduced along the axes, which are gone from its shape or have size 1.
Tensor prepare_reduced(const char* who, const Tensor& x, const std::vector<int>& axes,
                       bool keepdims, DType dtype, const Tensor* out) {
  Shape shape = x.shape();
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    shape[*axis] = 1;
    if (!keepdims) shape.erase(*axis);
  }
  const Tensor result = prepare_output(who, out, shape, dtype, x.device());
  check_no_overlap(who, result, x, "x");
  return result;
}

/// `result`, which may lack the axes, with them as axes of size 1.
Tensor with_axes(const Tensor& result, const std::vector<int>& axes, bool has_them) {
  if (has_them) return result;
  Layout layout = result.layout();
  for (const int axis : axes) layout = insert_axis(layout, axis);
  return result.with_layout(layout);
}

/// Whether 64 bits hold the sum of any so many elements, which are integers.
bool is_exact_anyway(DType dtype, int64_t count) {
  const int64_t room = 64 - 8 * itemsize(dtype);
  return !is_floating(dtype) && !is_complex(dtype) && count <= int64_t{1} << room;
}

/// Whether a fused group knows the reduction.
bool is_recorded(const Reduction& reduction) {
  return reduction.mode == SumMode::kPlain && reduction.kind <= ReduceKind::kMean;
}

/// Whether more of the same element change nothing.
bool is_idempotent(ReduceKind kind) {
  using enum ReduceKind;
  return kind == kMax || kind == kMin || kind == kAny || kind == kAll;
}

/// x with one element of each of the axes along which it repeats one element in memory.
Tensor without_repetition(const Tensor& x, const std::vector<int>& axes) {
  Tensor result = x;
  for (const int axis : axes) {
    if (x.strides()[axis] == 0 && x.shape(axis) > 1) result = slice(result, axis, 0, 1);
  }
  return result;
}

Tensor arg_reduce(const char* who, bool is_max, const Tensor& x, std::optional<int64_t> axis,
                  bool keepdims, const Tensor* out) {
  trace::Span span(who, "op");
  span.add_bytes(x.nbytes());
  if (is_complex(x.dtype())) {
    throw DTypeError(cat(who, ": dtype ", x.dtype(),
                         " is not supported; supported are bool, integers and real floats"));
  }
  const std::vector<int64_t> asked = axis ? std::vector{*axis} : std::vector<int64_t>{};
  const std::vector<int> reduced = normalize_axes(asked, x.ndim(), who);
  const Tensor result = prepare_reduced(who, x, reduced, keepdims, DType::kInt64, out);
  if (count_along(reduced, x.shape()) == 0) {
    throw ShapeError(cat(who, ": there is no element to choose from in shape ", x.shape()));
  }
  if (result.size() == 0) return result;
  if (axis) {
    // Of equal elements the first is returned.
    kArgSlot(x.device(), without_repetition(x, reduced), reduced[0], is_max,
             with_axes(result, reduced, keepdims));
  } else {
    const Tensor flat = reshape(x, {x.size()});
    kArgSlot(x.device(), flat, 0, is_max, result.with_layout({{1}, {1}, result.layout().offset}));
  }
  return result;
}

}  // namespace

Tensor reduce(const char* who, Reduction reduction, const Tensor& x, Axes axes, bool keepdims,
              const Tensor* out) {
  if (axes.are_none()) return reduce(who, reduction, with_own_axis(who, x), {-1}, false, out);
  trace::Span span(who, "op");
  span.add_bytes(x.nbytes());
  const std::vector<int> reduced = normalize_axes(axes, x.ndim(), who);
  const int64_t count = count_along(reduced, x.shape());
  const DType dtype = result_dtype(who, reduction, x.dtype());
  if (reduction.kind == ReduceKind::kSum && is_exact_anyway(x.dtype(), count)) {
    reduction.mode = SumMode::kPlain;
  }
  if (is_recorded(reduction) && out == nullptr && count > 0) {
    if (auto fused = jit::record_reduction(reduction.kind, x, reduced, keepdims, dtype)) {
      span.set_category("record");
      return *fused;
    }
  }
  const Tensor result = prepare_reduced(who, x, reduced, keepdims, dtype, out);
  if (count == 0) {
    fill_empty(who, reduction, result);
  } else if (result.size() > 0) {
    const Tensor read = is_idempotent(reduction.kind) ? without_repetition(x, reduced) : x;
    kReduceSlot(x.device(), who, reduction, read, reduced, with_axes(result, reduced, keepdims));
  }
  return result;
}

Tensor sum(const Tensor& x, Axes axes, bool keepdims, SumMode mode, const Tensor* out) {
  return reduce("sum", {ReduceKind::kSum, mode}, x, axes, keepdims, out);
}
Tensor mean(const Tensor& x, Axes axes, bool keepdims, SumMode mode, const Tensor* out) {
  return reduce("mean", {ReduceKind::kMean, mode}, x, axes, keepdims, out);
}
Tensor prod(const Tensor& x, Axes axes, bool keepdims, const Tensor* out) {
  return reduce("prod", {ReduceKind::kProd}, x, axes, keepdims, out);
}
Tensor max(const Tensor& x, Axes axes, bool keepdims, const Tensor* out) {
  return reduce("max", {ReduceKind::kMax}, x, axes, keepdims, out);
}
Tensor min(const Tensor& x, Axes axes, bool keepdims, const Tensor* out) {
  return reduce("min", {ReduceKind::kMin}, x, axes, keepdims, out);
}
Tensor any(const Tensor& x, Axes axes, bool keepdims, const Tensor* out) {
  return reduce("any", {ReduceKind::kAny}, x, axes, keepdims, out);
}
Tensor all(const Tensor& x, Axes axes, bool keepdims, const Tensor* out) {
  return reduce("all", {ReduceKind::kAll}, x, axes, keepdims, out);
}
Tensor norm(const Tensor& x, double ord, Axes axes, bool keepdims, const Tensor* out) {
  if (std::isnan(ord)) throw ExecutionError("norm: ord is NaN; allowed is any real number");
  return reduce("norm", {ReduceKind::kNorm, SumMode::kPlain, ord}, x, axes, keepdims, out);
}
Tensor var(const Tensor& x, Axes axes, double correction, bool keepdims, const Tensor* out) {
  return reduce("var", {ReduceKind::kVar, SumMode::kPlain, correction}, x, axes, keepdims, out);
}
Tensor stddev(const Tensor& x, Axes axes, double correction, bool keepdims, const Tensor* out) {
  return reduce("std", {ReduceKind::kStd, SumMode::kPlain, correction}, x, axes, keepdims, out);
}

Tensor argmax(const Tensor& x, std::optional<int64_t> axis, bool keepdims, const Tensor* out) {
  return arg_reduce("argmax", true, x, axis, keepdims, out);
}
Tensor argmin(const Tensor& x, std::optional<int64_t> axis, bool keepdims, const Tensor* out) {
  return arg_reduce("argmin", false, x, axis, keepdims, out);
}

Tensor cumsum(const Tensor& x, int64_t axis, const Tensor* out) {
  trace::Span span("cumsum", "op");
  const int along = normalize_axis(axis, x.ndim(), "cumsum");
  const DType dtype = result_dtype("cumsum", {ReduceKind::kSum}, x.dtype());
  const Tensor result = prepare_output("cumsum", out, x.shape(), dtype, x.device());
  check_same_or_no_overlap("cumsum", result, x, "x");
  if (x.size() > 0) kCumsumSlot(x.device(), x, along, result);
  return result;
}

}  // namespace cuop
