// What a device can do without knowing any operator: copy, fill, wait, tell its memory.
#pragma once

#include <cstdint>
#include <string>

#include "cuop/core/stream.h"

namespace cuop::backend {

struct MemoryInfo {
  int64_t free = 0;   ///< bytes
  int64_t total = 0;  ///< bytes
};

class Runtime {
 public:
  virtual ~Runtime() = default;
  virtual Device device() const = 0;
  /// Copies within the device or between it and the host, ordered on `stream`.
  virtual void copy(void* dst, const void* src, int64_t bytes, Stream stream) = 0;
  virtual void fill_bytes(void* dst, int value, int64_t bytes, Stream stream) = 0;
  virtual void synchronize() = 0;
  virtual MemoryInfo memory_info() const = 0;
  virtual std::string description() const = 0;
};

/// How many devices of the type this process can use.
int device_count(DeviceType type);
/// The device's runtime; DeviceError that says what is missing when there is none.
Runtime& runtime(Device device);
/// The device on which new tensors are made by this thread: set_device's, else CUOP_DEVICE, else a
/// GPU when one is usable, else the CPU.
Device current_device();
void set_current_device(Device device);

}  // namespace cuop::backend
