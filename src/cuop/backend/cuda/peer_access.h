// Memory that is opened to devices piece by piece, as the driver wants it for what it maps: to the
// device whose memory it is, and to those that were let in.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "cuop/backend/cuda/driver.h"
#include "cuop/core/fork_mutex.h"

namespace cuop::backend::cuda {

/// Of one device's memory. Any thread may call.
class PeerAccess {
 public:
  explicit PeerAccess(DeviceId owner) : open_to_{owner} {}

  /// Opens to another device what is mapped and what will be, and the driver's default pool where
  /// there is one. Asking twice is harmless.
  Result admit(DeviceId other, bool has_driver_pool);
  /// Opens pieces that were just mapped.
  Result open(void* address, int64_t bytes, int64_t piece);
  /// Before they are unmapped.
  void forget(void* address, int64_t bytes, int64_t piece) noexcept;

 private:
  ForkMutex mutex_;
  std::vector<DeviceId> open_to_;  ///< the owner first
  std::map<DevicePointer, size_t> pieces_;
};

}  // namespace cuop::backend::cuda
