// How the simulated vendor libraries stand on the simulated driver: the context that their handles
// belong to, and work on streams.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "cuop/backend/cuda/driver_types.h"
#include "tests/simulator/exported.h"

namespace cuop::simulator {

/// The context of the calling thread; null when it has none that can be used.
CUOP_SIMULATOR_EXPORTED backend::cuda::ContextHandle library_context();

/// Memory that the work reads or writes.
struct Region {
  const void* data = nullptr;
  size_t bytes = 0;
};

/// Elements on two axes, from the first one to the last.
template <class T>
Region region(const T* first, int64_t count, int64_t stride, int64_t lines, int64_t distance) {
  if (count == 0 || lines == 0) return {first, 0};
  return {first,
          static_cast<size_t>((count - 1) * stride + (lines - 1) * distance + 1) * sizeof(T)};
}

/// Memory of the current device that an object of a library takes for itself, as a plan does for
/// its tables or kernels. Work that needs it cannot be replayed when it is gone.
class CUOP_SIMULATOR_EXPORTED LibraryMemory {
 public:
  LibraryMemory();
  ~LibraryMemory();
  LibraryMemory(const LibraryMemory&) = delete;
  LibraryMemory& operator=(const LibraryMemory&) = delete;
  Region region() const;  ///< without an address when the device had none left

 private:
  backend::cuda::DevicePointer address_ = 0;
};

/// Starts the work on the stream of the current device, or records it. Memory that the device does
/// not reach when the work begins ends the device's use.
CUOP_SIMULATOR_EXPORTED backend::cuda::Result start_library_work(backend::cuda::StreamHandle on,
                                                                 std::vector<Region> regions,
                                                                 std::function<void()> work);

}  // namespace cuop::simulator
