// Memory that is kept for later use, given back.
#pragma once

#include "cuop/backend/current_device.h"
#include "cuop/core/noncopyable.h"

namespace cuop {

/// Returns the device's idle cached memory to the system and returns its bytes; live tensors are
/// never touched. DeviceError when there is no such device.
int64_t empty_cache(Device device = backend::current_device());

/// What is created while one lives, and not kept alive elsewhere, is returned to the system when it
/// dies.
class MemoryContext : NonCopyable {
 public:
  explicit MemoryContext(Device device = backend::current_device()) : device_(device) {}
  ~MemoryContext();

 private:
  Device device_;
};

}  // namespace cuop
