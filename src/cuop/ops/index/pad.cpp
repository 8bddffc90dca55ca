#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/arrange.h"
#include "cuop/ops/output.h"

namespace cuop {

namespace {

struct ModeName {
  const char* text;
  PadMode mode;
};
constexpr ModeName kModes[] = {{"constant", PadMode::kConstant},
                               {"edge", PadMode::kEdge},
                               {"reflect", PadMode::kReflect},
                               {"symmetric", PadMode::kSymmetric},
                               {"wrap", PadMode::kWrap}};

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

PadMode parse_pad_mode(std::string_view text) {
  std::vector<const char*> names;
  for (const ModeName& known : kModes) {
    if (text == known.text) return known.mode;
    names.push_back(known.text);
  }
  throw ExecutionError(cat("pad: mode '", text, "' is unknown; known are ", join(names)));
}

Tensor pad(const Tensor& x, std::span<const std::pair<int64_t, int64_t>> widths, PadMode mode,
           const Scalar& value, const Tensor* out) {
  const trace::Span span("pad", "op");
  const Widths checked = check_widths(x, widths, mode);
  Shape shape = x.shape();
  for (int i = 0; i < x.ndim(); ++i) {
    const auto [before, after] = checked[static_cast<size_t>(i)];
    shape[i] = checked_add(checked_add(shape[i], before, "pad"), after, "pad");
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
