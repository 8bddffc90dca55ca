// A limit on what a piece of work may take of a device's memory.
#pragma once

#include <atomic>
#include <memory>

#include "cuop/memory/current.h"
#include "cuop/memory/resource.h"

namespace cuop::memory {

/// Takes memory from another resource as long as no more than `limit` bytes of it are live at a
/// time; MemoryError beyond. Any threads may use it (each within a ResourceScope of its own).
class LimitedResource : public MemoryResource {
 public:
  LimitedResource(MemoryResource& upstream, int64_t limit) : upstream_(upstream), limit_(limit) {}

  void* allocate(int64_t bytes, Stream stream) override;
  void deallocate(void* data, int64_t bytes, Stream stream) noexcept override;
  void record_stream(void* data, Stream stream) override { upstream_.record_stream(data, stream); }
  /// Live bytes, their peak and the limit are its own; the rest is the upstream's.
  Statistics statistics() const override;
  void reset_peak() override { peak_ = live_.load(); }
  int64_t release_cached() override { return upstream_.release_cached(); }
  Device device() const override { return upstream_.device(); }

  int64_t live() const { return live_; }
  int64_t peak() const { return peak_; }

 private:
  MemoryResource& upstream_;
  const int64_t limit_;
  std::atomic<int64_t> live_ = 0;
  std::atomic<int64_t> peak_ = 0;
  std::atomic<int64_t> refused_ = 0;
};

/// One over the device's current resource. Tensors of it may outlive the owner's use: it goes when
/// its last bytes are given back.
std::shared_ptr<LimitedResource> make_limited(Device device, int64_t limit);

}  // namespace cuop::memory
