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
  int64_t reserved_bytes = 0;  ///< held from the system, live or idle
  int64_t cached_bytes = 0;    ///< reserved but idle
  int64_t allocation_count = 0;
  int64_t free_count = 0;
  int64_t out_of_memory_count = 0;
};

class MemoryResource {
 public:
  virtual ~MemoryResource() = default;
  /// At least `bytes` bytes aligned to kAlignment, ordered on `stream`; null for 0 bytes. Throws
  /// MemoryError with the request and the figures of the moment.
  virtual void* allocate(int64_t bytes, Stream stream) = 0;
  virtual void deallocate(void* data, int64_t bytes, Stream stream) noexcept = 0;
  virtual Statistics statistics() const = 0;
  virtual void reset_peak() = 0;
  /// Returns idle cached memory to the system; live memory is never touched. Answers the bytes.
  virtual int64_t release_cached() = 0;
  virtual Device device() const = 0;
};

}  // namespace cuop::memory
