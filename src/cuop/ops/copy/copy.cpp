#include "cuop/ops/copy/copy.h"

#include "cuop/backend/runtime.h"
#include "cuop/backend/slot.h"
#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/jit/fusion.h"
#include "cuop/ops/copy/copy_kernels.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/output.h"

namespace cuop {

namespace {

constexpr backend::Slot<void(const Tensor&, const Tensor&)> kStridedCopy{
    "copy", &kernels::strided_copy_cpu, &kernels::strided_copy_cuda};

/// The copy is work of one of the two streams; the other one waits before it and after it, so that
/// neither reads too early nor frees too soon.
void copy_between_gpus(const Tensor& dst, const Tensor& src) {
  backend::Runtime& runtime = backend::runtime(dst.device());
  const Stream to = current_stream(dst.device()), from = current_stream(src.device());
  runtime.order(to, from);
  runtime.copy(dst.data(), src.data(), src.nbytes(), to);
  runtime.order(from, to);
}

}  // namespace

void copy_into(const Tensor& dst, const Tensor& src) {
  const trace::Span span("copy", "op");
  const Device device = common_device("copy", {&dst, &src});
  check_writable("copy", dst);
  Tensor source = src.with_layout(broadcast_to(src.layout(), dst.shape(), "copy"));
  if (dst.size() == 0 || is_same_view(dst, source)) return;
  if (may_overlap(dst, source)) source = clone(source);
  kStridedCopy(device, dst, source);
}

Tensor clone(const Tensor& tensor) {
  Tensor result = empty(tensor.shape(), tensor.dtype(), tensor.device());
  copy_into(result, tensor);
  return result;
}

Tensor copy(const Tensor& x, const Tensor* out) {
  const Tensor result = prepare_output("copy", out, x.shape(), x.dtype(), x.device());
  copy_into(result, x);
  return result;
}

Tensor contiguous(const Tensor& tensor) { return tensor.is_contiguous() ? tensor : clone(tensor); }

Tensor cast(const Tensor& tensor, DType dtype) {
  if (tensor.dtype() == dtype) return tensor;
  if (auto fused = jit::record_cast(tensor, dtype)) return *fused;
  Tensor result = empty(tensor.shape(), dtype, tensor.device());
  copy_into(result, tensor);
  return result;
}

Tensor to_device(const Tensor& tensor, Device device) {
  if (tensor.device() == device) return tensor;
  const Tensor source = contiguous(tensor);
  Tensor result = empty(tensor.shape(), tensor.dtype(), device);
  if (!device.is_cpu() && !tensor.device().is_cpu()) {
    copy_between_gpus(result, source);
    return result;
  }
  const Device gpu = device.is_cpu() ? tensor.device() : device;
  backend::runtime(gpu).copy(result.data(), source.data(), source.nbytes(), current_stream(gpu));
  return result;
}

}  // namespace cuop
