// Host memory with statistics. The C library's allocator under it already caches small blocks.
#pragma once

#include <atomic>

#include "cuop/memory/resource.h"

namespace cuop::memory {

class HostResource final : public MemoryResource {
 public:
  void* allocate(int64_t bytes, Stream stream) override;
  void deallocate(void* data, int64_t bytes, Stream stream) noexcept override;
  Statistics statistics() const override;
  void reset_peak() override;
  int64_t release_cached() override;
  Device device() const override { return kCpu; }

 private:
  std::atomic<int64_t> live_ = 0;
  std::atomic<int64_t> peak_ = 0;
  std::atomic<int64_t> allocations_ = 0;
  std::atomic<int64_t> frees_ = 0;
  std::atomic<int64_t> failures_ = 0;
};

}  // namespace cuop::memory
