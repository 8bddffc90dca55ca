// The resource that tensors of a device are allocated from.
#pragma once

#include <memory>

#include "cuop/core/noncopyable.h"
#include "cuop/core/storage.h"
#include "cuop/memory/resource.h"

namespace cuop::memory {

/// DeviceError when the device cannot allocate.
MemoryResource& current_resource(Device device);
using ResourceProvider = MemoryResource& (*)(Device);
/// Names the function that returns the resource of a device of this type: how a device's backend,
/// which stands above this layer, offers its memory. `current` returns the part of it from which
/// this thread's tensors come now while none was chosen, where that is not always the whole.
void set_resource_provider(DeviceType type, ResourceProvider whole,
                           ResourceProvider current = nullptr);
/// The device's own resource, whatever was chosen since.
MemoryResource& device_resource(Device device);
/// What set_current_resource chose, else the device's own: without what is current for a while,
/// such as the memory of a graph, which is a part of it.
MemoryResource& whole_resource(Device device);
/// The same as the pool that it is; ExecutionError when it is none.
class Pool;
Pool& device_pool(Device device);
/// Replaces the device's resource (not owned); returns the one before.
MemoryResource* set_current_resource(Device device, MemoryResource* resource);

/// Makes a resource the current one of its device for this thread and the time of its life.
class ResourceScope : NonCopyable {
 public:
  explicit ResourceScope(MemoryResource& resource);
  ~ResourceScope();

  /// What scopes of this thread or set_current_resource chose; null when the device's own resource
  /// is the current one.
  static MemoryResource* find(Device device);

 private:
  MemoryResource* resource_;
  ResourceScope* before_;
};

/// New uninitialised storage from the device's current resource.
std::shared_ptr<Storage> allocate_storage(int64_t nbytes, Device device);
/// Work of `stream` uses the storage too: told to the resource that the storage came from, see
/// MemoryResource::record_stream. Memory of other libraries and what is still to be computed are
/// left alone.
void record_stream(Storage& storage, Stream stream);

}  // namespace cuop::memory
