#include "cuop/ops/sort/search.h"

#include "cuop/backend/slot.h"
#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/gather.h"
#include "cuop/ops/output.h"
#include "cuop/ops/sort/search_kernels.h"

namespace cuop {

namespace {

constexpr const char* kWho = "searchsorted";
constexpr backend::Slot kSearch{kWho, &kernels::search_sorted_cpu, &kernels::search_sorted_cuda};

/// The elements in the sorter's order.
Tensor in_order(const Tensor& sorted, const Tensor& sorter) {
  if (!(sorter.shape() == sorted.shape())) {
    throw ShapeError(
        cat(kWho, ": sorter has shape ", sorter.shape(), ", needed is x1's ", sorted.shape()));
  }
  if (!is_integer(sorter.dtype())) {
    throw DTypeError(cat(kWho, ": sorter must be of integers, given ", sorter.dtype()));
  }
  return take(sorted, sorter, 0);
}

}  // namespace

Tensor searchsorted(const Tensor& sorted, const Tensor& values, bool is_right, const Tensor* sorter,
                    const Tensor* out) {
  const trace::Span span(kWho, "op");
  if (sorted.ndim() != 1) {
    throw ShapeError(cat(kWho, ": x1 has shape ", sorted.shape(), "; it needs 1 dimension"));
  }
  const DType dtype = promote(sorted.dtype(), values.dtype());
  visit_dtype(RealTypes{}, dtype, kWho, [](auto) {});
  common_device(kWho, {&sorted, &values, sorter == nullptr ? &sorted : sorter});
  const Tensor rising = sorter == nullptr ? sorted : in_order(sorted, *sorter);
  const Tensor elements = contiguous(cast(rising, dtype));
  const Tensor wanted = contiguous(cast(values, dtype));
  const Tensor result = prepare_output(kWho, out, values.shape(), DType::kInt64, values.device());
  check_no_overlap(kWho, result, sorted, "x1");
  check_no_overlap(kWho, result, values, "x2");
  if (result.size() == 0) return result;
  const Tensor places =
      result.is_contiguous() ? result : empty(result.shape(), DType::kInt64, result.device());
  kSearch(result.device(), elements, wanted, is_right, places);
  if (places.data() != result.data()) copy_into(result, places);
  return result;
}

}  // namespace cuop
