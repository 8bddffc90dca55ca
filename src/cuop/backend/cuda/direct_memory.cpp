#include <algorithm>
#include <atomic>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cuop/backend/cuda/capture.h"
#include "cuop/backend/cuda/context.h"
#include "cuop/backend/cuda/cuda_memory.h"
#include "cuop/backend/cuda/cuda_runtime.h"
#include "cuop/backend/cuda/cuda_upstream.h"
#include "cuop/core/error.h"
#include "cuop/core/fork_mutex.h"
#include "cuop/core/one_per_device.h"
#include "cuop/memory/usage.h"

namespace cuop::backend::cuda {

namespace {

class DirectMemory final : public memory::MemoryResource {
 public:
  explicit DirectMemory(Device device) : runtime_(cuda_runtime(device)), order_(runtime_) {
    if (!runtime_.properties().has_memory_pools) return;
    side_ = runtime_.create_stream(0);
    const Driver& d = driver();
    check(d.device_get_default_mem_pool(&pool_, runtime_.id()), "memory: the pool of ", device);
    uint64_t keep = ~uint64_t{0};  // freed memory stays in the driver's pool until it is asked back
    check(d.mem_pool_set_attribute(pool_, PoolAttribute::kReleaseThreshold, &keep),
          "memory: the pool of ", device);
  }

  void* allocate(int64_t bytes, Stream stream) override {
    if (bytes == 0) return nullptr;
    const ContextScope scope(device());
    const RelaxedCapture outside;
    const Driver& d = driver();
    DevicePointer data = 0;
    const auto size = static_cast<size_t>(bytes);
    const Result result = pool_ != nullptr ? d.mem_alloc_async(&data, size, handle_of(stream))
                                           : d.mem_alloc(&data, size);
    if (result == Result::kOutOfMemory) refuse(bytes);
    check(result, "memory: allocating ", bytes, " bytes on ", device());
    auto* const block = reinterpret_cast<void*>(data);
    {
      const std::lock_guard lock(mutex_);
      live_blocks_[block].clear();
    }
    ++allocations_;
    usage_.add(bytes, bytes);
    return block;
  }

  void deallocate(void* data, int64_t bytes, Stream stream) noexcept override {
    if (data == nullptr) return;
    const std::vector<Stream> others = forget(data);
    const Driver& d = driver();
    try {
      const ContextScope scope(device());
      const RelaxedCapture outside;
      if (pool_ == nullptr) {
        d.mem_free(device_pointer(data));  // waits for the device
      } else {
        const Stream last = others.empty() ? stream : behind(others, stream);
        d.mem_free_async(device_pointer(data), handle_of(last));
      }
    } catch (const Error&) {
      // The process is ending or its device is lost; the driver takes the memory back itself.
    }
    usage_.add(-bytes, 0);
    ++frees_;
  }

  void record_stream(void* data, Stream stream) override {
    const std::lock_guard lock(mutex_);
    const auto block = live_blocks_.find(data);
    if (block == live_blocks_.end()) return;
    std::vector<Stream>& others = block->second;
    if (std::find(others.begin(), others.end(), stream) == others.end()) others.push_back(stream);
  }

  memory::Statistics statistics() const override {
    memory::Statistics s;
    s.allocated_bytes = usage_.live();
    s.peak_allocated_bytes = s.peak_active_bytes = usage_.peak();
    s.reserved_bytes = pool_ == nullptr ? usage_.live() : figure(PoolAttribute::kReservedCurrent);
    s.peak_reserved_bytes = pool_ == nullptr ? usage_.peak() : figure(PoolAttribute::kReservedHigh);
    s.cached_bytes = s.reserved_bytes - s.allocated_bytes;
    s.allocation_count = allocations_;
    s.free_count = frees_;
    s.out_of_memory_count = failures_;
    return s;
  }

  void reset_peak() override {
    usage_.reset_peak();
    if (pool_ == nullptr) return;
    uint64_t none = 0;  // the driver then goes on from what is reserved now
    check(driver().mem_pool_set_attribute(pool_, PoolAttribute::kReservedHigh, &none),
          "memory: the pool of ", device());
  }

  int64_t release_cached() override {
    if (pool_ == nullptr) return 0;
    // What is still to be freed on a stream cannot be given back; a recording cannot be waited for.
    if (!is_capturing(current_stream(device()))) runtime_.synchronize();
    const int64_t before = figure(PoolAttribute::kReservedCurrent);
    const ContextScope scope(device());
    check(driver().mem_pool_trim_to(pool_, 0), "memory: emptying the cache of ", device());
    return before - figure(PoolAttribute::kReservedCurrent);
  }

  Device device() const override { return runtime_.device(); }

 private:
  /// The block is no more; returns who used it besides its own stream.
  std::vector<Stream> forget(void* data) {
    const std::lock_guard lock(mutex_);
    auto block = live_blocks_.extract(data);
    return block.empty() ? std::vector<Stream>() : std::move(block.mapped());
  }

  /// A stream that comes after what all of these hold now; none of them waits for another.
  Stream behind(std::vector<Stream> streams, Stream last) {
    streams.push_back(last);
    for (const Stream& stream : streams) {
      // What is recorded for a graph does not run now; a mark of it would be a part of the graph.
      if (is_capturing(stream)) continue;
      const memory::StreamOrder::Event event = order_.record(stream);
      if (event == nullptr) continue;
      order_.make_wait(side_, event);
      order_.recycle(event);
    }
    return side_;
  }

  int64_t figure(PoolAttribute which) const {
    uint64_t bytes = 0;
    check(driver().mem_pool_get_attribute(pool_, which, &bytes), "memory: the pool of ", device());
    return static_cast<int64_t>(bytes);
  }

  [[noreturn]] void refuse(int64_t bytes) {
    ++failures_;
    const MemoryInfo info = runtime_.memory_info();
    const int64_t held = statistics().reserved_bytes;
    throw MemoryError(cat("memory: ", bytes, " bytes were asked of ", device(), ", which has ",
                          info.free, " of ", info.total, " bytes free; cuOP holds ", held,
                          " bytes, ", usage_.live(), " of them in use"),
                      {bytes, usage_.live(), held, info.free});
  }

  CudaRuntime& runtime_;
  CudaOrder order_;
  MemoryPoolHandle pool_ = nullptr;
  Stream side_;  ///< where blocks are freed that several streams used
  ForkMutex mutex_;
  std::unordered_map<void*, std::vector<Stream>> live_blocks_;  ///< with the streams that use them
  memory::Usage usage_;
  std::atomic<int64_t> allocations_ = 0, frees_ = 0, failures_ = 0;
};

}  // namespace

memory::MemoryResource& direct_memory(Device device) {
  static OnePerDevice<DirectMemory> resources;
  const Device known = cuda_runtime(device).device();
  return resources.get(known, [known] { return new DirectMemory(known); });
}

}  // namespace cuop::backend::cuda
