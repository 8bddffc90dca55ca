// Pooling on a GPU: a thread takes one window, neighbours take neighbouring windows.
#pragma once

#include "cuop/jit/kernels/reduce.cuh"
#include "cuop/jit/kernels/rows.cuh"
#include "cuop/ops/pool/pool_arguments.cuh"

namespace cuop::jit {

inline constexpr int kPoolThreads = 256;

/// Index is a signed type that holds every index of x and y.
template <class Stored, bool IsMax, class Index>
CUOP_FN void pool_windows(const PoolArguments& a) {
  using T = Computed<Stored>;
  const Index count = static_cast<Index>(a.count);
  const Index height = static_cast<Index>(a.in[1]), width = static_cast<Index>(a.in[2]);
#pragma unroll 1
  for (int64_t i = int64_t(blockIdx.x) * kPoolThreads + threadIdx.x; i < count;
       i += int64_t(gridDim.x) * kPoolThreads) {
    Index begin[3], end[3], rest = static_cast<Index>(i);
#pragma unroll
    for (int axis = 2; axis >= 0; --axis) {
      const Index size = static_cast<Index>(a.out[axis]), left = rest / size;
      const Index first = (rest - left * size) * static_cast<Index>(a.stride[axis]) -
                          static_cast<Index>(a.padding[axis]);
      const Index last = first + static_cast<Index>(a.kernel[axis]);
      begin[axis] = first > 0 ? first : 0;
      end[axis] = last < static_cast<Index>(a.in[axis]) ? last : static_cast<Index>(a.in[axis]);
      rest = left;
    }
    const Stored* const plane =
        static_cast<const Stored*>(a.x) + rest * static_cast<Index>(a.in[0]) * height * width;
    T result = IsMax ? lowest<T>() : T(0);
#pragma unroll 1
    for (Index d = begin[0]; d < end[0]; ++d) {
#pragma unroll 1
      for (Index h = begin[1]; h < end[1]; ++h) {
        const Stored* const row = plane + (d * height + h) * width;
#pragma unroll 4
        for (Index w = begin[2]; w < end[2]; ++w) {
          const T value = static_cast<T>(row[w]);
          if constexpr (IsMax) {
            result = value > result || value != value ? value : result;
          } else {
            result += value;
          }
        }
      }
    }
    if constexpr (!IsMax) {
      T elements = T(1);
#pragma unroll
      for (int axis = 0; axis < 3; ++axis) {
        elements *= a.count_include_pad != 0 ? static_cast<T>(a.kernel[axis])
                                             : static_cast<T>(end[axis] - begin[axis]);
      }
      result /= elements;
    }
    static_cast<Stored*>(a.y)[i] = stored<Stored>(result);
  }
}

}  // namespace cuop::jit
