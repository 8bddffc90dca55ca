// The resource that tensors of a device are allocated from.
#pragma once

#include <memory>

#include "cuop/core/storage.h"
#include "cuop/memory/resource.h"

namespace cuop::memory {

/// DeviceError when the device cannot allocate.
MemoryResource& current_resource(Device device);
/// Replaces the device's resource (not owned); answers the one before.
MemoryResource* set_current_resource(Device device, MemoryResource* resource);

/// New uninitialised storage from the device's current resource.
std::shared_ptr<Storage> allocate_storage(int64_t nbytes, Device device);
/// Gives memory to a deferred storage.
void fulfil_storage(Storage& storage);

}  // namespace cuop::memory
