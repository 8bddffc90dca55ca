#include "cuop/ops/sort/sort.h"

#include <algorithm>

#include "cuop/backend/slot.h"
#include "cuop/core/trace.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/index/arrange.h"
#include "cuop/ops/index/gather.h"
#include "cuop/ops/index/indexing.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/output.h"
#include "cuop/ops/reduce/reduce.h"
#include "cuop/ops/sort/sort_kernels.h"

namespace cuop {

namespace {

using Kernel = void(const Tensor&, int, bool, const Tensor&);
constexpr backend::Slot<Kernel> kSort{"sort", &kernels::sort_cpu, &kernels::sort_cuda};
constexpr backend::Slot<Kernel> kArgsort{"argsort", &kernels::argsort_cpu, &kernels::argsort_cuda};
constexpr backend::Slot kMarkRuns{"unique", &kernels::mark_runs_cpu, &kernels::mark_runs_cuda};

Tensor run(const char* who, const backend::Slot<Kernel>& kernel, const Tensor& x, int64_t axis,
           bool is_descending, DType dtype, const Tensor* out) {
  const trace::Span span(who, "op");
  visit_dtype(RealTypes{}, x.dtype(), who, [](auto) {});
  const int at = normalize_axis(axis, x.ndim(), who);
  const Tensor result = prepare_output(who, out, x.shape(), dtype, x.device());
  check_same_or_no_overlap(who, result, x, "x");
  if (result.size() > 0) kernel(x.device(), x, at, is_descending, result);
  return result;
}

/// Where in a sorted line another element begins; all NaN, at its end, are one.
Tensor value_changes(const Tensor& sorted) {
  const int64_t count = sorted.size();
  const Tensor changes = ones({count}, DType::kBool, sorted.device());
  if (count < 2) return changes;
  const Tensor behind = slice(changes, 0, 1, count), previous = slice(sorted, 0, 0, count - 1);
  not_equal(slice(sorted, 0, 1, count), previous, &behind);
  if (is_floating(sorted.dtype())) logical_and(behind, equal(previous, previous), &behind);
  return changes;
}

/// Each run ends where the next one begins, the last one at `count`.
Tensor run_lengths(const Tensor& first, int64_t count) {
  const int64_t some = std::min<int64_t>(1, first.size());
  const Tensor ends[] = {slice(first, 0, some, {}),
                         full({some}, count, DType::kInt64, first.device())};
  return subtract(concatenate(ends, 0), first);
}

/// Of -0 and 0 among `values` that which came first in `flat`: sorting puts -0 first.
void restore_first_zero(const Tensor& values, const Tensor& flat) {
  const Tensor place = nonzero(equal(values, 0))[0];
  if (place.size() == 0) return;
  const Tensor first = reshape(argmax(equal(flat, 0)), {1});
  put_along_axis(values, place, take(flat, first, 0), 0);
}

}  // namespace

Tensor sort(const Tensor& x, int64_t axis, bool is_descending, const Tensor* out) {
  return run("sort", kSort, x, axis, is_descending, x.dtype(), out);
}

Tensor argsort(const Tensor& x, int64_t axis, bool is_descending, const Tensor* out) {
  if (out != nullptr) check_no_overlap("argsort", *out, x, "x");
  return run("argsort", kArgsort, x, axis, is_descending, DType::kInt64, out);
}

Unique unique(const Tensor& x, const UniqueParts& wanted) {
  const trace::Span span("unique", "op");
  visit_dtype(RealTypes{}, x.dtype(), "unique", [](auto) {});
  const Tensor flat = contiguous(reshape(x, {x.size()}));
  Unique result;
  if (!wanted.index && !wanted.inverse) {  // nobody asks where an element stood
    const Tensor sorted = sort(flat);
    const Tensor first = nonzero(value_changes(sorted))[0];
    result.values = take(sorted, first, 0);
    if (is_floating(x.dtype())) restore_first_zero(result.values, flat);
    if (wanted.counts) result.counts = run_lengths(first, flat.size());
    return result;
  }
  const Tensor order = argsort(flat);
  const int64_t count = flat.size();
  const Tensor starts = empty({count}, DType::kBool, x.device());
  if (count > 0) kMarkRuns(x.device(), flat, order, starts);
  const Tensor first = nonzero(starts)[0];  // of each run, in the order
  const Tensor index = take(order, first, 0);
  result.values = take(flat, index, 0);
  if (wanted.index) result.index = index;
  if (wanted.counts) result.counts = run_lengths(first, count);
  if (wanted.inverse) {
    const Tensor runs = subtract(cumsum(starts, 0), 1);
    const Tensor inverse = empty({count}, DType::kInt64, x.device());
    put_along_axis(inverse, order, runs, 0);
    result.inverse = reshape(inverse, x.shape());
  }
  return result;
}

}  // namespace cuop
