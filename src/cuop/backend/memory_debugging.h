// Memory debugging of a device: red zones, poison, double frees and leaks (memory/guard.h).
#pragma once

#include <string>
#include <vector>

#include "cuop/memory/guard.h"

namespace cuop::backend {

/// From here on the device's tensors are guarded, or no more. Blocks that exist keep to the
/// resource they came from.
void set_memory_debugging(Device device, bool is_on);
bool is_memory_debugging(Device device);
/// Whether it is on for any device.
bool is_memory_debugging();
/// What has the figures of the device's tensors, guarded or not, also when it is off again.
memory::MemoryResource& counted_resource(Device device);
/// What was found wrong so far, after a look at every guarded block; empty while never switched on.
std::vector<std::string> check_memory(Device device);
/// Guarded blocks that are live, the largest first.
std::vector<memory::GuardResource::Leak> memory_leaks(Device device);

}  // namespace cuop::backend
