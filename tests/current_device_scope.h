// Tests of what is the CPU's alone, where a GPU may be the default device.
#pragma once

#include "cuop/backend/current_device.h"

namespace cuop::test {

/// The thread's current device, until the scope ends.
class CurrentDeviceScope {
 public:
  explicit CurrentDeviceScope(Device device) { backend::set_current_device(device); }
  ~CurrentDeviceScope() { backend::set_current_device(before_); }
  CurrentDeviceScope(const CurrentDeviceScope&) = delete;
  CurrentDeviceScope& operator=(const CurrentDeviceScope&) = delete;

 private:
  const Device before_ = backend::current_device();
};

}  // namespace cuop::test
