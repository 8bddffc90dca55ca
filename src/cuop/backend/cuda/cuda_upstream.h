// GPU memory and page-locked host memory as upstreams of a pool, and CUDA's order of streams.
#pragma once

#include <mutex>
#include <vector>

#include "cuop/backend/cuda/cuda_runtime.h"
#include "cuop/core/fork_mutex.h"
#include "cuop/memory/upstream.h"

namespace cuop::backend::cuda {

/// Address ranges in which granules of physical memory are mapped and unmapped.
class MappedCudaUpstream final : public memory::Upstream {
 public:
  explicit MappedCudaUpstream(CudaRuntime& runtime);
  Device device() const override { return runtime_.device(); }
  std::string name() const override { return "cuda, mapped"; }
  bool can_map() const override { return true; }
  int64_t granule() const override { return granule_; }
  void* acquire(int64_t bytes) override;
  void release(void* range, int64_t bytes) noexcept override;
  /// Mapping costs by the piece: 13 ms a GiB in pieces of 2 MiB, 1 ms in these (H200).
  int64_t large_granule() const override { return 16 * granule_; }
  bool map(void* address, int64_t bytes, int64_t piece) override;
  void unmap(void* address, int64_t bytes, int64_t piece) noexcept override;
  memory::DeviceMemory memory() const override;

 private:
  AllocationProperties properties() const;
  bool can_share() const;

  CudaRuntime& runtime_;
  int64_t granule_ = 0;
  bool is_shareable_ = false;  ///< what is mapped can be exported to other processes
};

/// Plain pieces of memory that a device's driver gives.
class CudaPieces : public memory::PlainUpstream {
 public:
  explicit CudaPieces(CudaRuntime& runtime) : runtime_(runtime) {}

 protected:
  CudaRuntime& runtime_;
};

/// The device's, for devices and drivers that cannot map.
class PlainCudaUpstream final : public CudaPieces {
 public:
  using CudaPieces::CudaPieces;
  Device device() const override { return runtime_.device(); }
  std::string name() const override { return "cuda, plain"; }
  void* acquire(int64_t bytes) override;
  void release(void* range, int64_t bytes) noexcept override;
  memory::DeviceMemory memory() const override;
};

/// Host memory that the device copies from and to by itself.
class PinnedHostUpstream final : public CudaPieces {
 public:
  using CudaPieces::CudaPieces;
  Device device() const override { return kCpu; }
  std::string name() const override { return "host, pinned"; }
  void* acquire(int64_t bytes) override;
  void release(void* range, int64_t bytes) noexcept override;
  memory::DeviceMemory memory() const override;
};

/// Events of the device's streams, kept for the next use.
class CudaOrder final : public memory::StreamOrder {
 public:
  explicit CudaOrder(CudaRuntime& runtime) : runtime_(runtime) {}
  Event record(Stream stream) noexcept override;
  bool is_done(Event event) noexcept override;
  void wait(Event event) noexcept override;
  void wait_interruptibly(Event event) override;
  void make_wait(Stream stream, Event event) noexcept override;
  void recycle(Event event) noexcept override;

 private:
  CudaRuntime& runtime_;
  ForkMutex mutex_;
  std::vector<EventHandle> idle_;
};

}  // namespace cuop::backend::cuda
