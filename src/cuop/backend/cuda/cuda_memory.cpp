#include "cuop/backend/cuda/cuda_memory.h"

#include <memory>

#include "cuop/backend/cuda/capture.h"
#include "cuop/backend/cuda/cuda_upstream.h"
#include "cuop/backend/cuda/graph_memory.h"
#include "cuop/core/byte_size.h"
#include "cuop/core/env.h"
#include "cuop/core/error.h"
#include "cuop/core/one_per_device.h"
#include "cuop/memory/pool.h"

namespace cuop::backend::cuda {

namespace {

/// What the accesses of kernels and of the libraries are aligned to at best.
constexpr int64_t kQuantum = 512;

/// Everything that one pool stands on; never destroyed, since the driver may be gone before.
struct PoolOfDevice {
  std::unique_ptr<memory::Upstream> upstream;
  CudaOrder order;
  memory::Pool pool;

  PoolOfDevice(CudaRuntime& runtime, std::unique_ptr<memory::Upstream> on,
               const memory::MemoryPoolOptions& options)
      : upstream(std::move(on)), order(runtime), pool(*upstream, order, options) {}
};

std::unique_ptr<memory::Upstream> upstream_of(CudaRuntime& runtime) {
  const std::string& kind = env().cuda_allocator.value;
  const bool can_map = runtime.properties().has_virtual_memory;
  if (kind == "mapped" && !can_map) {
    throw ExecutionError(cat("CUOP_CUDA_ALLOCATOR: ", runtime.device(),
                             " cannot map memory; give auto, plain or driver"));
  }
  if (kind == "plain" || !can_map) return std::make_unique<PlainCudaUpstream>(runtime);
  if (kind == "auto" || kind == "mapped") return std::make_unique<MappedCudaUpstream>(runtime);
  throw ExecutionError(
      cat("CUOP_CUDA_ALLOCATOR: '", kind, "' is unknown; give auto, mapped, plain or driver"));
}

PoolOfDevice* make_pool(CudaRuntime& runtime) {
  memory::MemoryPoolOptions options;
  options.quantum = kQuantum;
  const std::string& cache = env().cuda_cache_size.value;
  if (!cache.empty()) options.cache_bytes = parse_bytes(cache, "CUOP_CUDA_CACHE_SIZE");
  auto* made = new PoolOfDevice(runtime, upstream_of(runtime), options);
  made->pool.set_fraction(env().cuda_memory_fraction.value);
  return made;
}

PoolOfDevice* make_pinned(CudaRuntime& runtime) {
  memory::MemoryPoolOptions options;
  options.quantum = kQuantum;
  return new PoolOfDevice(runtime, std::make_unique<PinnedHostUpstream>(runtime), options);
}

memory::Pool& pool_of(OnePerDevice<PoolOfDevice>& pools, Device device,
                      PoolOfDevice* (*make)(CudaRuntime&)) {
  CudaRuntime& runtime = cuda_runtime(device);
  return pools.get(device, [&] { return make(runtime); }).pool;
}

}  // namespace

memory::MemoryResource& cuda_memory(Device device) {
  static const bool is_drivers = env().cuda_allocator.value == "driver";
  if (is_drivers) return direct_memory(device);
  static OnePerDevice<PoolOfDevice> pools;
  return pool_of(pools, device, &make_pool);
}

memory::MemoryResource& current_cuda_memory(Device device) {
  memory::MemoryResource& whole = cuda_memory(device);  // says why a device is absent
  const Stream stream = current_stream(device);
  const uint64_t capture = capture_by_others(stream);
  return capture == 0 ? whole : memory_of_capture(whole, cuda_runtime(device), stream, capture);
}

memory::MemoryResource& pinned_memory(Device device) {
  static OnePerDevice<PoolOfDevice> pools;
  return pool_of(pools, device, &make_pinned);
}

}  // namespace cuop::backend::cuda
