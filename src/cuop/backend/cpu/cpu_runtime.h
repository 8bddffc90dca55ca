// The host as a device: work runs at once, in the caller.
#pragma once

#include "cuop/backend/device_runtime.h"

namespace cuop::backend {

Runtime& cpu_runtime();

}  // namespace cuop::backend
