#include "cuop/backend/cuda/direct_memory.h"

#include <array>
#include <atomic>
#include <mutex>

#include "cuop/backend/cuda/context.h"
#include "cuop/backend/cuda/cuda_runtime.h"
#include "cuop/core/error.h"

namespace cuop::backend::cuda {

namespace {

class DirectMemory final : public memory::MemoryResource {
 public:
  explicit DirectMemory(Device device) : runtime_(cuda_runtime(device)) {
    if (!runtime_.properties().has_memory_pools) return;
    const Driver& d = driver();
    check(d.device_get_default_mem_pool(&pool_, runtime_.id()), "memory: the pool of ", device);
    uint64_t keep = ~uint64_t{0};  // freed memory stays in the driver's pool until it is asked back
    check(d.mem_pool_set_attribute(pool_, PoolAttribute::kReleaseThreshold, &keep),
          "memory: the pool of ", device);
  }

  void* allocate(int64_t bytes, Stream stream) override {
    if (bytes == 0) return nullptr;
    const ContextScope scope(device());
    const Driver& d = driver();
    DevicePointer data = 0;
    const auto size = static_cast<size_t>(bytes);
    const Result result = pool_ != nullptr ? d.mem_alloc_async(&data, size, handle_of(stream))
                                           : d.mem_alloc(&data, size);
    if (result == Result::kOutOfMemory) refuse(bytes);
    check(result, "memory: allocating ", bytes, " bytes on ", device());
    ++allocations_;
    const int64_t now = live_ += bytes;
    int64_t peak = peak_;
    while (now > peak && !peak_.compare_exchange_weak(peak, now)) {
    }
    return reinterpret_cast<void*>(data);
  }

  void deallocate(void* data, int64_t bytes, Stream stream) noexcept override {
    if (data == nullptr) return;
    const Driver& d = driver();
    try {
      const ContextScope scope(device());
      if (pool_ != nullptr) {
        d.mem_free_async(device_pointer(data), handle_of(stream));
      } else {
        d.mem_free(device_pointer(data));
      }
    } catch (const Error&) {
      // The process is ending or its device is lost; the driver takes the memory back itself.
    }
    live_ -= bytes;
    ++frees_;
  }

  memory::Statistics statistics() const override {
    memory::Statistics s;
    s.allocated_bytes = live_;
    s.peak_allocated_bytes = peak_;
    s.reserved_bytes = reserved();
    s.cached_bytes = s.reserved_bytes - s.allocated_bytes;
    s.allocation_count = allocations_;
    s.free_count = frees_;
    s.out_of_memory_count = failures_;
    return s;
  }

  void reset_peak() override { peak_ = live_.load(); }

  int64_t release_cached() override {
    if (pool_ == nullptr) return 0;
    runtime_.synchronize();  // what is still to be freed on a stream cannot be given back
    const int64_t before = reserved();
    const ContextScope scope(device());
    check(driver().mem_pool_trim_to(pool_, 0), "memory: emptying the cache of ", device());
    return before - reserved();
  }

  Device device() const override { return runtime_.device(); }

 private:
  int64_t reserved() const {
    if (pool_ == nullptr) return live_;
    uint64_t bytes = 0;
    check(driver().mem_pool_get_attribute(pool_, PoolAttribute::kReservedCurrent, &bytes),
          "memory: the pool of ", device());
    return static_cast<int64_t>(bytes);
  }

  [[noreturn]] void refuse(int64_t bytes) {
    ++failures_;
    const MemoryInfo info = runtime_.memory_info();
    const int64_t held = reserved();
    throw MemoryError(cat("memory: ", bytes, " bytes were asked of ", device(), ", which has ",
                          info.free, " of ", info.total, " bytes free; cuOP holds ", held,
                          " bytes, ", live_.load(), " of them in use"),
                      {bytes, live_.load(), held, info.free});
  }

  CudaRuntime& runtime_;
  MemoryPoolHandle pool_ = nullptr;
  std::atomic<int64_t> live_ = 0, peak_ = 0, allocations_ = 0, frees_ = 0, failures_ = 0;
};

}  // namespace

memory::MemoryResource& direct_memory(Device device) {
  static std::array<std::atomic<DirectMemory*>, kMaxDevices> resources{};
  static std::mutex mutex;
  CudaRuntime& runtime = cuda_runtime(device);
  std::atomic<DirectMemory*>& place = resources[static_cast<size_t>(device.index)];
  if (DirectMemory* known = place) return *known;
  const std::lock_guard lock(mutex);
  if (place == nullptr) place = new DirectMemory(runtime.device());
  return *place;
}

}  // namespace cuop::backend::cuda
