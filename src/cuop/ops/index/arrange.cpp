#include "cuop/ops/index/arrange.h"

#include <algorithm>

#include "cuop/core/enum_names.h"
#include "cuop/core/error.h"
#include "cuop/core/interrupt.h"
#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/gather.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/output.h"

namespace cuop {

namespace {

Tensor part(const Tensor& t, int axis, int64_t start, int64_t length, int64_t step = 1) {
  return t.with_layout(slice(t.layout(), axis, start, length, step));
}

/// The dtype and device that all tensors share or promote to; errors for an empty list.
DType check_list(const char* who, std::span<const Tensor> tensors) {
  if (tensors.empty()) throw ShapeError(cat(who, ": at least one tensor is needed"));
  DType dtype = tensors[0].dtype();
  for (const Tensor& t : tensors) {
    common_device(who, {&tensors[0], &t});
    dtype = promote(dtype, t.dtype());
  }
  return dtype;
}

int64_t wrap(int64_t value, int64_t period) {
  const int64_t rest = value % period;
  return rest < 0 ? rest + period : rest;
}

using Widths = std::vector<std::pair<int64_t, int64_t>>;

Widths check_widths(const Tensor& x, std::span<const std::pair<int64_t, int64_t>> widths,
                    PadMode mode) {
  const auto ndim = static_cast<size_t>(x.ndim());
  if (widths.size() != ndim && widths.size() != 1) {
    throw ShapeError(cat("pad: ", widths.size(), " pairs of widths were given for a tensor of ",
                         ndim, " dimensions; one or one an axis are allowed"));
  }
  Widths result;
  for (size_t i = 0; i < ndim; ++i) {
    const auto [before, after] = widths[widths.size() == 1 ? 0 : i];
    if (before < 0 || after < 0) {
      throw ShapeError(
          cat("pad: widths (", before, ", ", after, ") of axis ", i, " must not be negative"));
    }
    if (mode != PadMode::kConstant && x.shape(static_cast<int>(i)) == 0 && before + after > 0) {
      throw ShapeError(cat("pad: axis ", i, " is empty; only mode constant can extend it"));
    }
    result.emplace_back(before, after);
  }
  return result;
}

/// Where the element at `position` (negative or beyond the end) of an axis of n comes from.
int64_t source_index(int64_t position, int64_t n, PadMode mode) {
  if (mode == PadMode::kEdge) return std::clamp<int64_t>(position, 0, n - 1);
  if (mode == PadMode::kReflect && n == 1) return 0;
  // A mirrored axis repeats with twice its length, less the edges when these are not repeated.
  const int64_t period = mode == PadMode::kWrap        ? n
                         : mode == PadMode::kSymmetric ? 2 * n
                                                       : 2 * n - 2;
  int64_t inside = position % period;
  if (inside < 0) inside += period;
  if (inside < n) return inside;
  return period - inside - (mode == PadMode::kSymmetric ? 1 : 0);
}

/// Copies within `t` along `axis`: positions [begin, end) from the middle that starts at `first`
/// and has n elements, in as long straight runs as there are.
void extend(const Tensor& t, int axis, int64_t begin, int64_t end, int64_t first, int64_t n,
            PadMode mode) {
  const auto source = [&](int64_t position) {
    return first + source_index(position - first, n, mode);
  };
  for (int64_t start = begin; start < end;) {
    check_interrupt();
    int64_t length = 1;
    const int64_t step = start + 1 < end ? source(start + 1) - source(start) : 1;
    while (start + length < end && step >= -1 && step <= 1 &&
           source(start + length) == source(start) + length * step) {
      ++length;
    }
    copy_into(t.with_layout(slice(t.layout(), axis, start, length, 1)),
              t.with_layout(slice(t.layout(), axis, source(start), length, step)));
    start += length;
  }
}

}  // namespace

Tensor concatenate(std::span<const Tensor> tensors, int64_t axis, const Tensor* out) {
  const trace::Span span("concatenate", "op");
  const DType dtype = check_list("concatenate", tensors);
  Shape shape = tensors[0].shape();
  if (shape.empty()) throw ShapeError("concatenate: tensors of 0 dimensions have no axis to join");
  const int at = normalize_axis(axis, shape.ndim(), "concatenate");
  shape[at] = 0;
  for (const Tensor& t : tensors) {
    Shape other = t.shape();
    const bool has_axis = other.ndim() == shape.ndim();
    if (has_axis) other[at] = shape[at];
    if (!has_axis || other != shape) {
      throw ShapeError(cat("concatenate: shapes ", tensors[0].shape(), " and ", t.shape(),
                           " differ besides axis ", at));
    }
    shape[at] += t.shape(at);
  }
  const Tensor result = prepare_output("concatenate", out, shape, dtype, tensors[0].device());
  for (const Tensor& t : tensors) check_no_overlap("concatenate", result, t, "an input");
  int64_t start = 0;
  for (const Tensor& t : tensors) {
    copy_into(part(result, at, start, t.shape(at)), t);
    start += t.shape(at);
  }
  return result;
}

Tensor stack(std::span<const Tensor> tensors, int64_t axis, const Tensor* out) {
  const trace::Span span("stack", "op");
  const DType dtype = check_list("stack", tensors);
  const Shape& each = tensors[0].shape();
  for (const Tensor& t : tensors) {
    if (t.shape() != each) {
      throw ShapeError(cat("stack: shapes ", each, " and ", t.shape(), " differ"));
    }
  }
  const int at = normalize_axis(axis, each.ndim() + 1, "stack");
  Shape shape = each;
  shape.insert(at, static_cast<int64_t>(tensors.size()));
  const Tensor result = prepare_output("stack", out, shape, dtype, tensors[0].device());
  for (const Tensor& t : tensors) check_no_overlap("stack", result, t, "an input");
  for (size_t i = 0; i < tensors.size(); ++i) {
    copy_into(select(result, at, static_cast<int64_t>(i)), tensors[i]);
  }
  return result;
}

Tensor flip(const Tensor& x, const std::optional<Dims>& axes) {
  Layout layout = x.layout();
  std::vector<int> chosen;
  if (!axes) {
    chosen = normalize_axes({}, x.ndim(), "flip");
  } else if (!axes->empty()) {
    chosen = normalize_axes({axes->begin(), axes->end()}, x.ndim(), "flip");
  }
  for (int axis : chosen) {
    layout = slice(layout, axis, x.shape(axis) - 1, x.shape(axis), -1);
  }
  return x.with_layout(layout);
}

Tensor roll(const Tensor& x, std::span<const int64_t> shifts) {
  const int64_t count = x.size();
  int64_t total = 0;
  for (int64_t shift : shifts) total = count > 0 ? (total + wrap(shift, count)) % count : 0;
  const int64_t first_axis[] = {0}, shift[] = {total};
  return reshape(roll(reshape(x, {count}), shift, first_axis), x.shape());
}

Tensor roll(const Tensor& x, std::span<const int64_t> shifts, std::span<const int64_t> axes) {
  const trace::Span span("roll", "op");
  if (shifts.size() != axes.size() && shifts.size() != 1 && axes.size() != 1) {
    throw ShapeError(cat("roll: ", shifts.size(), " shifts do not fit ", axes.size(), " axes"));
  }
  Shape shift = Dims::filled(x.ndim(), 0);
  const size_t moves = shifts.empty() || axes.empty() ? 0 : std::max(shifts.size(), axes.size());
  for (size_t i = 0; i < moves; ++i) {
    const int axis = normalize_axis(axes[axes.size() == 1 ? 0 : i], x.ndim(), "roll");
    const int64_t period = x.shape(axis);
    if (period == 0) continue;
    const int64_t given = shifts[shifts.size() == 1 ? 0 : i];
    shift[axis] = (shift[axis] + wrap(given, period)) % period;
  }
  const Tensor result = empty(x.shape(), x.dtype(), x.device());
  // Each shifted axis splits the copy in two: what moves up and what comes in at the front.
  std::vector<std::pair<Tensor, Tensor>> blocks{{result, x}};
  for (int axis = 0; axis < x.ndim(); ++axis) {
    const int64_t s = shift[axis], rest = x.shape(axis) - s;
    if (s == 0) continue;
    std::vector<std::pair<Tensor, Tensor>> halves;
    for (const auto& [to, from] : blocks) {
      halves.emplace_back(part(to, axis, s, rest), part(from, axis, 0, rest));
      halves.emplace_back(part(to, axis, 0, s), part(from, axis, rest, s));
    }
    blocks = std::move(halves);
  }
  for (const auto& [to, from] : blocks) copy_into(to, from);
  return result;
}

Tensor tile(const Tensor& x, std::span<const int64_t> repeats) {
  const trace::Span span("tile", "op");
  const int ndim = std::max(x.ndim(), static_cast<int>(repeats.size()));
  Shape shape, split, source_shape;
  Strides source_strides;
  for (int i = 0; i < ndim; ++i) {
    const int from_x = i - (ndim - x.ndim());
    const int from_repeats = i - (ndim - static_cast<int>(repeats.size()));
    const int64_t size = from_x >= 0 ? x.shape(from_x) : 1;
    const int64_t count = from_repeats >= 0 ? repeats[static_cast<size_t>(from_repeats)] : 1;
    if (count < 0) throw ShapeError(cat("tile: repeats[", from_repeats, "] is ", count, " < 0"));
    shape.push_back(checked_multiply(size, count, "tile"));
    if (count != 1) {
      split.push_back(count);
      source_shape.push_back(count);
      source_strides.push_back(0);
    }
    split.push_back(size);
    source_shape.push_back(size);
    source_strides.push_back(from_x >= 0 ? x.strides()[from_x] : 0);
  }
  const Tensor result = empty(shape, x.dtype(), x.device());
  copy_into(reshape(result, split),
            x.with_layout({source_shape, source_strides, x.layout().offset}));
  return result;
}

Tensor repeat(const Tensor& x, int64_t count, std::optional<int64_t> axis) {
  const trace::Span span("repeat", "op");
  if (count < 0) throw ShapeError(cat("repeat: repeats is ", count, ", it must not be negative"));
  if (!axis) return repeat(reshape(x, {x.size()}), count, 0);
  const int at = normalize_axis(*axis, x.ndim(), "repeat");
  Shape shape = x.shape(), split = x.shape();
  shape[at] = checked_multiply(shape[at], count, "repeat: repeats");
  split.insert(at + 1, count);
  const Tensor result = empty(shape, x.dtype(), x.device());
  copy_into(reshape(result, split), x.with_layout(insert_axis(x.layout(), at + 1)));
  return result;
}

Tensor repeat(const Tensor& x, std::span<const int64_t> counts, std::optional<int64_t> axis) {
  if (counts.size() == 1) return repeat(x, counts[0], axis);
  if (!axis) return repeat(reshape(x, {x.size()}), counts, 0);
  const trace::Span span("repeat", "op");
  const int at = normalize_axis(*axis, x.ndim(), "repeat");
  if (static_cast<int64_t>(counts.size()) != x.shape(at)) {
    throw ShapeError(cat("repeat: ", counts.size(), " counts do not fit the ", x.shape(at),
                         " elements along axis ", at, "; needed is one, or one an element"));
  }
  int64_t total = 0;
  for (const int64_t count : counts) {
    if (count < 0)
      throw ShapeError(cat("repeat: repeats holds ", count, "; counts must not be negative"));
    total = checked_add(total, count, "repeat: repeats");
  }
  const Tensor source = empty({total}, DType::kInt64);
  auto* next = source.data<int64_t>();
  for (size_t i = 0; i < counts.size(); ++i) {
    next = std::fill_n(next, counts[i], static_cast<int64_t>(i));
  }
  return take(x, to_device(source, x.device()), at);
}

PadMode parse_pad_mode(std::string_view text) {
  return parse_name<PadMode>("pad: mode", {"constant", "edge", "reflect", "symmetric", "wrap"},
                             text);
}

Tensor pad(const Tensor& x, std::span<const std::pair<int64_t, int64_t>> widths, PadMode mode,
           const Scalar& value, const Tensor* out) {
  const trace::Span span("pad", "op");
  const Widths checked = check_widths(x, widths, mode);
  constexpr const char* kWidths = "pad: pad_width";
  Shape shape = x.shape();
  int64_t count = 1;
  for (int i = 0; i < x.ndim(); ++i) {
    const auto [before, after] = checked[static_cast<size_t>(i)];
    shape[i] = checked_add(checked_add(shape[i], before, kWidths), after, kWidths);
    count = checked_multiply(count, shape[i], kWidths);
  }
  const Tensor result = prepare_output("pad", out, shape, x.dtype(), x.device());
  check_no_overlap("pad", result, x, "x");
  const Tensor border =
      mode == PadMode::kConstant ? scalar_tensor("pad", value, x.dtype(), x.device()) : Tensor();
  Layout middle = result.layout();
  for (int i = 0; i < x.ndim(); ++i) {
    middle = slice(middle, i, checked[static_cast<size_t>(i)].first, x.shape(i), 1);
  }
  copy_into(result.with_layout(middle), x);
  // Axis after axis, over what is complete so far in the axes before and only the middle in those
  // after; corners come out right because each axis copies the borders of the ones before it.
  Layout done = middle;
  for (int i = 0; i < x.ndim(); ++i) {
    const auto [before, after] = checked[static_cast<size_t>(i)];
    Layout wide = done;
    wide.offset -= before * wide.strides[i] * (x.shape(i) > 0 ? 1 : 0);
    wide.shape[i] = shape[i];
    const Tensor whole = result.with_layout(wide);
    const int64_t n = x.shape(i);
    if (mode == PadMode::kConstant) {
      copy_into(whole.with_layout(slice(wide, i, 0, before, 1)), border);
      copy_into(whole.with_layout(slice(wide, i, before + n, after, 1)), border);
    } else {
      extend(whole, i, 0, before, before, n, mode);
      extend(whole, i, before + n, shape[i], before, n, mode);
    }
    done = wide;
  }
  return result;
}

}  // namespace cuop
