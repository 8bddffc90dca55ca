// Kernel text on the host: what the threads of a warp do together, and what blocks tell each other,
// beside host_device.h. Warps are whole.
#pragma once

#include <array>

#include "tests/jit/host_device.h"

namespace cuop::test {

struct WarpBarrier {
  std::barrier<> barrier{32};
};
inline std::array<WarpBarrier, 32> warp_barriers;

}  // namespace cuop::test

inline void __syncwarp() { cuop::test::warp_barriers[threadIdx.x / 32].barrier.arrive_and_wait(); }
inline void __threadfence() { std::atomic_thread_fence(std::memory_order_seq_cst); }

template <class T>
T __ldcg(const T* place) {
  return *place;
}

template <class T>
T __shfl_xor_sync(unsigned, T value, int apart) {
  static T lanes[1024];
  lanes[threadIdx.x] = value;
  __syncwarp();
  const T result = lanes[threadIdx.x ^ static_cast<unsigned>(apart)];
  __syncwarp();
  return result;
}

template <class T>
T atomicOr(T* place, T value) {
  return std::atomic_ref<T>(*place).fetch_or(value);
}
