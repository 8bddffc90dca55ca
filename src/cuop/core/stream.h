// An ordered queue of device work. On the CPU work runs at once and the handle is null.
#pragma once

#include "cuop/core/device.h"

namespace cuop {

struct Stream {
  Device device;
  void* handle = nullptr;
  bool operator==(const Stream&) const = default;
};

}  // namespace cuop
