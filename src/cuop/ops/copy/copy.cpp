#include "cuop/ops/copy/copy.h"

#include "cuop/backend/execution.h"
#include "cuop/backend/runtime.h"
#include "cuop/backend/slot.h"
#include "cuop/core/error.h"
#include "cuop/core/scalar.h"
#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/jit/recording.h"
#include "cuop/memory/resource.h"
#include "cuop/ops/copy/copy_kernels.h"
#include "cuop/ops/copy/pinned.h"
#include "cuop/ops/copy/row_copies_cuda.h"
#include "cuop/ops/copy/staged_copy.h"
#include "cuop/ops/create/empty.h"
#include "cuop/ops/output.h"

namespace cuop {

namespace {

constexpr backend::Slot kStridedCopy{"copy", &kernels::strided_copy_cpu,
                                     &kernels::strided_copy_cuda};

bool are_gpus(const Tensor& a, const Tensor& b) {
  return !a.device().is_cpu() && !b.device().is_cpu();
}

/// The copy is work of one of the two streams; the other one waits before it and after it, so that
/// neither reads too early nor frees too soon.
template <class Copy>
void between_streams(const Tensor& dst, const Tensor& src, Copy&& copy) {
  src.data();  // recorded work runs here, before it is waited for
  if (!are_gpus(dst, src)) return copy();
  backend::Runtime& runtime = backend::runtime(dst.device());
  const Stream to = current_stream(dst.device()), from = current_stream(src.device());
  runtime.order(to, from);
  copy();
  runtime.order(from, to);
}

/// Whether a copy between the host and a GPU goes in stages, for which tensors may have any layout.
bool goes_in_stages(const Tensor& to, const Tensor& from) {
  if (to.device().is_cpu()) return is_staged(to, from.device());
  return from.device().is_cpu() && is_staged(from, to.device());
}

/// The elements of `from`, on a GPU, in the order in which those of `to` lie, by which downloads go
/// fastest; `from` itself where they do, and where the GPU has no memory for that.
Tensor in_order_of(const Tensor& to, const Tensor& from) {
  const Layout* const host = &to.layout();
  const Dims order = memory_order(*host);
  if (permute(from.layout(), order).is_contiguous()) return from;
  try {
    const Layout layout = layout_of_result(host->shape, {&host, 1});
    const Tensor result = empty_laid_out(layout, from.dtype(), from.device());
    copy_into(result, from);
    return result;
  } catch (const MemoryError&) {
    return from;
  }
}

/// Between devices, of one dtype and shape; both are row-major, or `goes_in_stages`.
void move_elements(const Tensor& to, const Tensor& from) {
  trace::Span span("copy", "op");
  span.add_bytes(from.nbytes());
  if (goes_in_stages(to, from)) {
    const Tensor source = to.device().is_cpu() ? in_order_of(to, from) : from;
    if (copy_locked_rows(to, source) || staged_copy(to, source)) return;
  }
  if (!from.is_contiguous()) return move_elements(to, contiguous(from));
  if (!to.is_contiguous()) return copy_into(to, to_device(from, to.device()));
  const Device gpu = to.device().is_cpu() ? from.device() : to.device();
  backend::runtime(gpu).copy(to.data(), from.data(), from.nbytes(), current_stream(gpu));
}

bool are_alike(const Tensor& dst, const Tensor& src) {
  return dst.dtype() == src.dtype() && dst.shape() == src.shape();
}

memory::MemoryResource& pool_of(const char* who, Device gpu) {
  if (gpu.is_cpu()) {
    throw DeviceError(cat(who, ": the memory is locked for a GPU; give cuda or cuda:N, not cpu"));
  }
  return backend::locked_memory(gpu);
}

}  // namespace

void check_convertible(const char* who, DType from, DType to) {
  if (is_complex(from) && !is_complex(to) && !is_bool(to)) {
    throw DTypeError(
        cat(who, ": ", from, " to ", to, " would drop the imaginary part; take real(x) or abs(x)"));
  }
}

void copy_into(const Tensor& dst, const Tensor& src) {
  trace::Span span("copy", "op");
  const Device device = common_device("copy", {&dst, &src});
  check_convertible("copy", src.dtype(), dst.dtype());
  check_writable("copy", dst);
  Tensor source = src.with_layout(broadcast_to(src.layout(), dst.shape(), "copy"));
  if (dst.size() == 0 || is_same_view(dst, source)) return;
  span.add_bytes(src.nbytes() + dst.nbytes());
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
  check_convertible("cast", tensor.dtype(), dtype);
  if (auto fused = jit::record_cast(tensor, dtype)) return *fused;
  const Layout* const given = &tensor.layout();
  Tensor result =
      empty_laid_out(layout_of_result(given->shape, {&given, 1}), dtype, tensor.device());
  copy_into(result, tensor);
  return result;
}

Tensor cast_exactly(const char* who, const Tensor& tensor, DType dtype) {
  const Tensor result = cast(tensor, dtype);
  if (!is_integer(dtype) || is_bool(tensor.dtype())) return result;
  const Tensor host = contiguous(to_device(tensor, kCpu));
  visit_dtype(RealTypes{}, host.dtype(), who, [&]<class T>(TypeTag<T>) {
    const T* values = host.data<T>();
    for (int64_t i = 0; i < host.size(); ++i) {
      if constexpr (std::is_same_v<T, uint64_t> || std::is_floating_point_v<T>) {
        Scalar(values[i]).check_fits(who, dtype);
      } else if constexpr (std::is_integral_v<T>) {
        Scalar(static_cast<int64_t>(values[i])).check_fits(who, dtype);
      } else {
        Scalar(static_cast<float>(values[i])).check_fits(who, dtype);
      }
    }
  });
  return result;
}

Tensor to_device(const Tensor& tensor, Device device) {
  if (tensor.device() == device) return tensor;
  Tensor result = empty(tensor.shape(), tensor.dtype(), device);
  const Tensor source = goes_in_stages(result, tensor) ? tensor : contiguous(tensor);
  between_streams(result, source, [&] { move_elements(result, source); });
  return result;
}

void copy_across(const Tensor& dst, const Tensor& src) {
  between_streams(dst, src, [&] { pull(dst, src); });
}

void pull(const Tensor& dst, const Tensor& src) {
  if (dst.device() == src.device()) return copy_into(dst, src);
  check_convertible("copy", src.dtype(), dst.dtype());
  check_writable("copy", dst);
  const Tensor source = src.with_layout(broadcast_to(src.layout(), dst.shape(), "copy"));
  if (dst.size() == 0) return;
  if (are_alike(dst, src) && goes_in_stages(dst, src)) return move_elements(dst, src);
  const bool is_direct = are_alike(dst, src) && dst.is_contiguous();
  const bool is_read = are_gpus(dst, src) && backend::runtime(dst.device()).reads(src.device());
  if (is_direct && src.is_contiguous()) {
    if (is_read && kernels::copy_few_from_peer_cuda(dst, src)) return;
    return move_elements(dst, src);
  }
  if (is_read) {
    const bool is_by_engine = backend::execution_options().is_beside_work;
    if (is_by_engine && dst.dtype() == src.dtype()) {
      return kernels::copy_beside_work_cuda(dst, source);
    }
    trace::Span span("copy", "op");
    span.add_bytes(src.nbytes() + dst.nbytes());
    return kStridedCopy(dst.device(), dst, source);
  }
  if (!is_direct) return copy_into(dst, to_device(src, dst.device()));
  const Tensor packed = contiguous(src);
  between_streams(dst, packed, [&] { move_elements(dst, packed); });
}

Tensor pin_memory(const Tensor& tensor, Device gpu) {
  trace::Span span("pin_memory", "op");
  memory::MemoryResource& pool = pool_of("pin_memory", gpu);
  const Layout layout = contiguous_layout(tensor.shape());
  const int64_t bytes = checked_multiply(layout.size(), itemsize(tensor.dtype()), "pin_memory");
  span.add_bytes(bytes);
  // Copies from and to the host are done when their call returns, so that no stream still uses a
  // block that goes back: one order serves all.
  const Stream order{gpu};
  void* data = pool.allocate(bytes, order);
  std::shared_ptr<void> owner(data,
                              [&pool, bytes, order](void* p) { pool.deallocate(p, bytes, order); });
  const Tensor result{std::make_shared<Storage>(data, bytes, kCpu, std::move(owner)), layout,
                      tensor.dtype()};
  copy_across(result, tensor);
  return result;
}

bool is_pinned(const Tensor& on_host, Device gpu) {
  const Extent reach = extent(on_host.layout());
  const int64_t item = itemsize(on_host.dtype());
  const auto* base = static_cast<const char*>(on_host.storage()->data());
  return backend::runtime(gpu).is_locked(base + reach.begin * item,
                                         (reach.end - reach.begin) * item);
}

int64_t release_pinned(Device gpu) { return pool_of("release_pinned", gpu).release_cached(); }

}  // namespace cuop
