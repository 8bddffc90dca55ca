// Memory that is kept for later use, given back.
#pragma once

#include "cuop/backend/current_device.h"

namespace cuop {

/// Returns the device's idle cached memory to the system and returns its bytes; live tensors are
/// never touched. DeviceError when there is no such device.
int64_t empty_cache(Device device = backend::current_device());

/// What is created while one lives, and not kept alive elsewhere, is returned to the system when it
/// dies.
class MemoryContext {
 public:
  explicit MemoryContext(Device device = backend::current_device()) : device_(device) {}
  ~MemoryContext();
  MemoryContext(const MemoryContext&) = delete;
  MemoryContext& operator=(const MemoryContext&) = delete;

 private:
  Device device_;
};

}  // namespace cuop
