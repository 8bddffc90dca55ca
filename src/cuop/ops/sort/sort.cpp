#include "cuop/ops/sort/sort.h"

#include "cuop/backend/slot.h"
#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/gather.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/output.h"
#include "cuop/ops/sort/sort_kernels.h"

namespace cuop {

namespace {

using Kernel = void(const Tensor&, int, bool, const Tensor&);
constexpr backend::Slot<Kernel> kSort{"sort", &kernels::sort_cpu};
constexpr backend::Slot<Kernel> kArgsort{"argsort", &kernels::argsort_cpu};
constexpr backend::Slot<void(const Tensor&, const Tensor&, int64_t*)> kMarkRuns{
    "unique", &kernels::mark_runs_cpu};

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

}  // namespace

Tensor sort(const Tensor& x, int64_t axis, bool is_descending, const Tensor* out) {
  return run("sort", kSort, x, axis, is_descending, x.dtype(), out);
}

Tensor argsort(const Tensor& x, int64_t axis, bool is_descending, const Tensor* out) {
  if (out != nullptr) check_no_overlap("argsort", *out, x, "x");
  return run("argsort", kArgsort, x, axis, is_descending, DType::kInt64, out);
}

Unique unique(const Tensor& x) {
  const trace::Span span("unique", "op");
  const Tensor flat = contiguous(reshape(x, {x.size()}));
  const Tensor order = argsort(flat);
  const int64_t count = flat.size();
  Tensor inverse = empty({count}, DType::kInt64, x.device());
  std::vector<int64_t> starts(static_cast<size_t>(count));
  if (count > 0) kMarkRuns(x.device(), flat, order, starts.data());
  std::vector<int64_t> first, lengths;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t position = order.data<int64_t>()[i];
    if (starts[static_cast<size_t>(i)] != 0) {
      first.push_back(position);
      lengths.push_back(0);
    }
    ++lengths.back();
    inverse.data<int64_t>()[position] = static_cast<int64_t>(first.size()) - 1;
  }
  const Shape shape{static_cast<int64_t>(first.size())};
  Unique result;
  result.index = from_values<int64_t>(shape, std::span<const int64_t>(first));
  result.counts = from_values<int64_t>(shape, std::span<const int64_t>(lengths));
  result.values = take(flat, result.index, 0);
  result.inverse = reshape(inverse, x.shape());
  return result;
}

}  // namespace cuop
