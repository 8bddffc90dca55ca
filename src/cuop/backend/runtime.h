// The devices of this process and their runtimes.
#pragma once

#include "cuop/backend/device_runtime.h"
#include "cuop/core/noncopyable.h"
#include "cuop/core/storage.h"

namespace cuop::memory {
class MemoryResource;
}

namespace cuop::backend {

/// How many devices of the type this process can use.
int device_count(DeviceType type);
/// The device's runtime; DeviceError that says what is missing when there is none.
Runtime& runtime(Device device);
/// Page-locked host memory for copies from and to a GPU, ordered on its streams; DeviceError for
/// the CPU.
memory::MemoryResource& locked_memory(Device gpu);
/// Memory of the stream's device whose bytes all have one value, as work of the stream.
std::shared_ptr<Storage> filled_storage(int64_t bytes, int byte, Stream stream);
/// A stream of its own, destroyed with this object.
class OwnedStream : NonCopyable {
 public:
  explicit OwnedStream(Device device, int priority = 0)
      : stream_(runtime(device).create_stream(priority)) {}
  ~OwnedStream() { runtime(stream_.device).destroy_stream(stream_); }
  const Stream& get() const { return stream_; }

 private:
  Stream stream_;
};

}  // namespace cuop::backend
