// Pooling on a GPU: neighbouring threads take neighbouring windows.
#pragma once

#include "cuop/jit/kernels/reduce.cuh"
#include "cuop/jit/kernels/rows.cuh"
#include "cuop/ops/pool/pool_arguments.cuh"

namespace cuop::jit {

/// visit(i) for the i from begin to end, of which there are at most `Most` where that is known;
/// else `AtATime` have their loads on the way together.
template <int Most, int AtATime, class Index, class Visit>
CUOP_FN void each_of_window(Index begin, Index end, Visit&& visit) {
  if constexpr (Most > 0) {
#pragma unroll
    for (int k = 0; k < Most; ++k) {
      if (begin + k < end) visit(begin + k);
    }
  } else {
#pragma unroll AtATime
    for (Index i = begin; i < end; ++i) visit(i);
  }
}

/// Index is a signed type that holds every index of x and y. Only the last `Axes` axes of x and y
/// are longer than 1. Height and Width are the window's, or 0 where the kernel serves any.
/// IsPacked: each row of a window is one aligned access.
template <class Stored, bool IsMax, class Index, int Axes, int Height, int Width, bool IsPacked>
CUOP_FN void pool_windows(const PoolArguments& a) {
  using T = Computed<Stored>;
  const Index count = static_cast<Index>(a.count);
  const Index height = static_cast<Index>(a.in[1]), width = static_cast<Index>(a.in[2]);
#pragma unroll 1
  for (int64_t i = int64_t(blockIdx.x) * kPoolThreads + threadIdx.x; i < count;
       i += int64_t(gridDim.x) * kPoolThreads) {
    Index begin[3] = {}, end[3] = {1, 1, 1}, rest = static_cast<Index>(i);
#pragma unroll
    for (int axis = 2; axis >= 3 - Axes; --axis) {
      const Index size = static_cast<Index>(a.out[axis]);
      Index left;
      if constexpr (sizeof(Index) == 4) {
        left = static_cast<Index>(quotient(static_cast<uint32_t>(rest), a.by_out[axis]));
      } else {
        left = rest / size;
      }
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
    const auto take = [&](Stored element) {
      const T value = static_cast<T>(element);
      if constexpr (IsMax) {
        result = value > result || value != value ? value : result;
      } else {
        result += value;
      }
    };
#pragma unroll 1
    for (Index d = begin[0]; d < end[0]; ++d) {
      each_of_window<Height, 1>(begin[1], end[1], [&](Index h) {
        const Stored* const row = plane + (d * height + h) * width;
        if constexpr (IsPacked) {
          Stored elements[Width];
          load_pack(elements, row + begin[2]);
#pragma unroll
          for (int w = 0; w < Width; ++w) take(elements[w]);
        } else {
          each_of_window<Width, 4>(begin[2], end[2], [&](Index w) { take(row[w]); });
        }
      });
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
