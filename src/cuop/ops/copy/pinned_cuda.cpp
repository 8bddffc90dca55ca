#include "cuop/backend/cuda/cuda_memory.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/copy/pinned.h"

namespace cuop {

namespace {

memory::MemoryResource& pool_of(const char* who, Device gpu) {
  if (gpu.is_cpu()) {
    throw DeviceError(cat(who, ": the memory is locked for a GPU; give cuda or cuda:N, not cpu"));
  }
  backend::runtime(gpu);  // an absent device is said here, with the reason
  return backend::cuda::pinned_memory(gpu);
}

}  // namespace

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

int64_t release_pinned(Device gpu) { return pool_of("release_pinned", gpu).release_cached(); }

}  // namespace cuop
