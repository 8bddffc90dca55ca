#include "cuop/ops/reduce/cumulative_sum.h"

#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/reduce/reduce.h"

namespace cuop {

Tensor cumulative_sum(const Tensor& x, std::optional<int64_t> axis,
                      const CumulativeOptions& options) {
  const trace::Span span("cumulative_sum", "op");
  if (!axis && x.ndim() != 1) {
    throw ShapeError(cat("cumulative_sum: axis is needed for a tensor of ", x.ndim(),
                         " dimensions; only one of 1 may leave it out"));
  }
  const int at = normalize_axis(axis.value_or(0), x.ndim(), "cumulative_sum");
  const Tensor sums = cumsum(options.dtype ? cast(x, *options.dtype) : x, at);
  const DType dtype = options.dtype.value_or(sums.dtype());
  if (!options.includes_initial) return cast(sums, dtype);
  Shape shape = sums.shape();
  ++shape[at];
  const Tensor result = zeros(shape, dtype, x.device());
  copy_into(slice(result, at, 1, {}), sums);
  return result;
}

}  // namespace cuop
