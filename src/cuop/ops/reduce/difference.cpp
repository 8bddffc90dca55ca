#include "cuop/ops/reduce/difference.h"

#include <algorithm>

#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/index/view.h"

namespace cuop {

Tensor diff(const Tensor& x, int64_t order, int64_t axis) {
  const trace::Span span("diff", "op");
  if (order < 0) throw ExecutionError(cat("diff: n is ", order, "; it must be at least 0"));
  const int at = normalize_axis(axis, x.ndim(), "diff");
  Tensor result = x;
  // An empty axis stays empty.
  for (int64_t i = std::min(order, x.shape(at)); i > 0; --i) {
    const Tensor behind = slice(result, at, 1, {}), before = slice(result, at, 0, -1);
    result = is_bool(x.dtype()) ? not_equal(behind, before) : subtract(behind, before);
  }
  return result;
}

}  // namespace cuop
