// Kernel text on the host: what NVRTC has built in, for tests that run a kernel's own text where no
// GPU is. Blocks run one after the other; a kernel with barriers gets a thread for each of its
// threads. Includes of kernel text follow this one.
#pragma once

#include <atomic>
#include <barrier>
#include <bit>
#include <thread>
#include <vector>

#define __shared__ static  // of the one block that runs

struct HostIndex {
  unsigned x = 0;
};
inline thread_local HostIndex threadIdx, blockIdx;
inline HostIndex gridDim, blockDim;
inline std::barrier<>* host_barrier = nullptr;

inline void __syncthreads() { host_barrier->arrive_and_wait(); }

template <class T>
T __shfl_up_sync(unsigned, T value, int apart) {
  static T lanes[1024];
  lanes[threadIdx.x] = value;
  __syncthreads();
  const bool is_inside = static_cast<int>(threadIdx.x % 32) >= apart;
  const T result = is_inside ? lanes[threadIdx.x - static_cast<unsigned>(apart)] : value;
  __syncthreads();
  return result;
}

inline int __popc(unsigned bits) { return std::popcount(bits); }
inline int __ffs(int bits) { return __builtin_ffs(bits); }

template <class T>
T atomicAdd(T* place, T value) {
  return std::atomic_ref<T>(*place).fetch_add(value);
}
template <class T>
T atomicCAS(T* place, T expected, T value) {
  std::atomic_ref<T>(*place).compare_exchange_strong(expected, value);
  return expected;
}
template <class T>
void atomicMin(T* place, T value) {
  T known = *place;
  while (value < known && !std::atomic_ref<T>(*place).compare_exchange_weak(known, value)) {
  }
}
template <class T>
void atomicMax(T* place, T value) {
  T known = *place;
  while (value > known && !std::atomic_ref<T>(*place).compare_exchange_weak(known, value)) {
  }
}

namespace cuop::test {

/// A kernel without barriers. Backwards, so that nothing depends on threads being in order.
template <class Kernel>
void run_threads(unsigned blocks, unsigned threads, Kernel kernel) {
  gridDim.x = blocks;
  blockDim.x = threads;
  for (unsigned block = blocks; block-- > 0;) {
    for (unsigned thread = threads; thread-- > 0;) {
      blockIdx.x = block;
      threadIdx.x = thread;
      kernel();
    }
  }
}

/// A kernel whose threads meet at barriers.
template <class Kernel>
void run_together(unsigned blocks, unsigned threads, Kernel kernel) {
  gridDim.x = blocks;
  blockDim.x = threads;
  std::barrier<> barrier(static_cast<std::ptrdiff_t>(threads));
  host_barrier = &barrier;
  std::vector<std::thread> running;
  for (unsigned thread = 0; thread < threads; ++thread) {
    running.emplace_back([&, thread] {
      threadIdx.x = thread;
      for (unsigned block = 0; block < blocks; ++block) {
        blockIdx.x = block;
        kernel();
        barrier.arrive_and_wait();  // the next block takes over the shared memory
      }
    });
  }
  for (std::thread& each : running) each.join();
}

}  // namespace cuop::test
