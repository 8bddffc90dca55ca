// How the simulated vendor libraries put their work on streams of the simulated driver.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "cuop/backend/cuda/driver_types.h"

namespace cuop::simulator {

/// Memory that the work reads or writes.
struct Region {
  const void* data = nullptr;
  size_t bytes = 0;
};

/// Starts the work on the stream of the current device, or records it. Memory that the device does
/// not reach when the work begins ends the device's use.
[[gnu::visibility("default")]] backend::cuda::Result start_library_work(
    backend::cuda::StreamHandle on, std::vector<Region> regions, std::function<void()> work);

}  // namespace cuop::simulator
