// The devices of the CUDA driver and their primary contexts, which PyTorch, CuPy and the CUDA
// runtime use as well.
#pragma once

#include "cuop/backend/cuda/driver.h"
#include "cuop/core/noncopyable.h"
#include "cuop/core/stream.h"

namespace cuop::backend::cuda {

/// Devices that this process can use, as CUDA_VISIBLE_DEVICES leaves them; 0 without a driver.
int visible_device_count();
/// Why `device` cannot be used, with the way to the CPU; "" when it can.
std::string absence_of(Device device);
/// The primary context, retained by the first call for the rest of the process; a DeviceError that
/// says what is missing when there is no such device.
ContextHandle primary_context(Device device);

inline StreamHandle handle_of(Stream stream) { return static_cast<StreamHandle>(stream.handle); }
inline DevicePointer device_pointer(const void* data) {
  return reinterpret_cast<DevicePointer>(data);
}

/// Makes a device's context current for the time of its life and then puts back the one before, so
/// that other libraries of this thread stay on their device.
class ContextScope : NonCopyable {
 public:
  explicit ContextScope(Device device);
  ~ContextScope();

 private:
  ContextHandle before_ = nullptr;
  bool is_changed_ = false;
};

}  // namespace cuop::backend::cuda
