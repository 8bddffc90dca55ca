// Host memory as an upstream: mapped granule by granule, or in plain blocks.
#pragma once

#include "cuop/memory/host_memory.h"
#include "cuop/memory/upstream.h"

namespace cuop::memory {

/// Address ranges of mmap in which granules are opened and closed.
class MappedHostUpstream final : public Upstream {
 public:
  Device device() const override { return kCpu; }
  std::string name() const override { return "host, mapped"; }
  bool can_map() const override { return true; }
  int64_t granule() const override { return int64_t{2} << 20; }  // a huge page
  void* acquire(int64_t bytes) override;
  void release(void* range, int64_t bytes) noexcept override;
  bool map(void* address, int64_t bytes, int64_t piece) override;
  void unmap(void* address, int64_t bytes, int64_t piece) noexcept override;
  DeviceMemory memory() const override { return host_memory(); }

 private:
  const int64_t total_ = host_memory().total;
};

/// Blocks of the C library, the host's likeness of cudaMalloc.
class PlainHostUpstream final : public PlainUpstream {
 public:
  Device device() const override { return kCpu; }
  std::string name() const override { return "host, plain"; }
  void* acquire(int64_t bytes) override;
  void release(void* range, int64_t bytes) noexcept override;
  DeviceMemory memory() const override { return host_memory(); }

 private:
  const int64_t total_ = host_memory().total;
};

}  // namespace cuop::memory
