// Host memory with statistics. The C library's allocator under it already caches small blocks.
#pragma once

#include <atomic>

#include "cuop/memory/resource.h"
#include "cuop/memory/usage.h"

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
  Usage usage_;
  std::atomic<int64_t> allocations_ = 0, frees_ = 0, failures_ = 0;
};

/// The pool over mapped host memory, or the C library's allocator when CUOP_HOST_ALLOCATOR asks for
/// it. Made by the first call and never destroyed: tensors may outlive static destructors.
MemoryResource& default_host_resource();

}  // namespace cuop::memory
