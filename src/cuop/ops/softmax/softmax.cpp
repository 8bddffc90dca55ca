#include "cuop/ops/softmax/softmax.h"

#include "cuop/backend/slot.h"
#include "cuop/core/trace.h"
#include "cuop/ops/dense_output.h"
#include "cuop/ops/output.h"
#include "cuop/ops/softmax/softmax_kernels.h"

namespace cuop {

namespace {

constexpr backend::Slot kSlot{"softmax", &kernels::softmax_cpu, &kernels::softmax_cuda};

Tensor run(const char* who, const Tensor& x, int64_t axis, bool is_log, const Tensor* out) {
  trace::Span span(who, "op");
  span.add_bytes(2 * x.nbytes());
  visit_dtype(FloatingTypes{}, x.dtype(), who, [](auto) {});
  const int along = normalize_axis(axis, x.ndim(), who);
  const Tensor result = prepare_output(who, out, x.shape(), x.dtype(), x.device());
  check_same_or_no_overlap(who, result, x, "x");
  if (x.size() == 0) return result;
  fill_dense(result, x.dtype(),
             [&](const Tensor& dense) { kSlot(x.device(), contiguous(x), along, is_log, dense); });
  return result;
}

}  // namespace

Tensor softmax(const Tensor& x, int64_t axis, const Tensor* out) {
  return run("softmax", x, axis, false, out);
}

Tensor log_softmax(const Tensor& x, int64_t axis, const Tensor* out) {
  return run("log_softmax", x, axis, true, out);
}

}  // namespace cuop
