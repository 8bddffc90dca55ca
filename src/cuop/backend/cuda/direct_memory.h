// GPU memory straight from the driver's own stream-ordered pool.
#pragma once

#include "cuop/memory/resource.h"

namespace cuop::backend::cuda {

/// The device's resource; made by the first call.
memory::MemoryResource& direct_memory(Device device);

}  // namespace cuop::backend::cuda
