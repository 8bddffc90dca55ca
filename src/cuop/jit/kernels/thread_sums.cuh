// Sums over the threads of a block.
#pragma once

#include "cuop/jit/kernels/prelude.h"

namespace cuop::jit {

template <class T>
CUOP_FN T value_below(T value, int apart) {
  if constexpr (is_complex_type<T>) {
    return {__shfl_up_sync(0xffffffffu, value.real(), apart),
            __shfl_up_sync(0xffffffffu, value.imag(), apart)};
  } else {
    return __shfl_up_sync(0xffffffffu, value, apart);
  }
}

/// The sum of the values of the threads before this one, and of all threads. Every thread of the
/// block must come here.
template <int Threads, class T>
CUOP_FN T sum_of_threads_before(T value, T& total) {
  constexpr int kWarps = Threads / 32;
  __shared__ T sums[kWarps];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  T through = value;
#pragma unroll
  for (int apart = 1; apart < 32; apart *= 2) {
    const T below = value_below(through, apart);
    if (lane >= apart) through = below + through;
  }
  const T before = value_below(through, 1);
  if (lane == 31) sums[warp] = through;
  __syncthreads();
  T start = T(0);
  total = T(0);
#pragma unroll
  for (int k = 0; k < kWarps; ++k) {
    if (k == warp) start = total;
    total = total + sums[k];
  }
  __syncthreads();  // the sums are free for the next call
  return lane == 0 ? start : start + before;
}

}  // namespace cuop::jit
