// Whether the tuner may measure now.
#pragma once

#include <string>

#include "cuop/core/device.h"

namespace cuop::tune {

/// Frozen, the tuner reads what was stored and measures nothing, so that every run of a program
/// takes the same kernels. CUOP_TUNE_FROZEN at first.
bool is_frozen();
void set_frozen(bool is_on);

/// Why nothing may be measured on the device by this thread now, "" when it may: the tuner is
/// frozen, this thread captures a graph, or the device is busy with work of the current stream
/// (which `is_asked`, for measurements that somebody asked for, overrules).
std::string measuring_obstacle(Device device, bool is_asked);

}  // namespace cuop::tune
