// Where memory comes from. Pools, limits, statistics and debug guards are resources over another
// resource (the upstream).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "cuop/core/stream.h"

namespace cuop::memory {

/// Alignment of every allocation: a cache line and the widest vector register.
inline constexpr int64_t kAlignment = 64;

struct Statistics {
  int64_t allocated_bytes = 0;  ///< live
  int64_t peak_allocated_bytes = 0;
  int64_t peak_active_bytes = 0;  ///< of what is live or pending
  int64_t reserved_bytes = 0;     ///< held from the system, live or idle
  int64_t peak_reserved_bytes = 0;
  int64_t cached_bytes = 0;  ///< reserved but idle
  int64_t allocation_count = 0;
  int64_t free_count = 0;
  int64_t out_of_memory_count = 0;

  // Known to pools; 0 elsewhere.
  int64_t pending_bytes = 0;        ///< freed, but other streams may still use it
  int64_t thread_cached_bytes = 0;  ///< the part of cached_bytes that threads keep for themselves
  int64_t largest_free_bytes = 0;   ///< the largest request that idle memory can serve
  double fragmentation = 0.0;       ///< 1 - largest_free_bytes / cached_bytes
  int64_t capacity_bytes = 0;       ///< the limit, or the device's memory without one
  int64_t map_count = 0;            ///< how often memory was taken from the system
  int64_t unmap_count = 0;          ///< how often it was given back
  // How often an allocation had to go so far before it was served or refused.
  int64_t waits_for_pending = 0;
  int64_t cache_flushes = 0;
  int64_t idle_releases = 0;
  int64_t takes_from_streams = 0;
  int64_t callback_calls = 0;
};

class MemoryResource {
 public:
  virtual ~MemoryResource() = default;
  /// At least `bytes` bytes aligned to kAlignment, ordered on `stream`; null for 0 bytes. Throws
  /// MemoryError with the request and the figures of the moment.
  virtual void* allocate(int64_t bytes, Stream stream) = 0;
  /// `bytes` as given to allocate. The memory serves later work of `stream` at once.
  virtual void deallocate(void* data, int64_t bytes, Stream stream) noexcept = 0;
  /// Work of `stream` uses the live block too: after its deallocation nobody gets it before the
  /// work that the stream has been given until then is done. Ignored for what is no block of this
  /// resource.
  virtual void record_stream(void* /*data*/, Stream /*stream*/) {}
  virtual Statistics statistics() const = 0;
  virtual void reset_peak() = 0;
  /// Returns idle cached memory to the system; live memory is never touched. Returns the bytes.
  virtual int64_t release_cached() = 0;
  virtual Device device() const = 0;
};

}  // namespace cuop::memory
