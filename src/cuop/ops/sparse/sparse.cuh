// From rows of values to the positions of rows and back, by bisection.
#pragma once

#include "cuop/ops/sparse/sparse_arguments.cuh"

namespace cuop::jit {

template <class Index>
CUOP_FN void search_rows(const RowSearch& a) {
  const auto* const sorted = static_cast<const Index*>(a.sorted);
  const int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < a.count; i += step) {
    const int64_t wanted = i + a.is_upper;  // the first that is not below it
    int64_t low = 0, high = a.sorted_count;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (sorted[middle] < wanted) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    static_cast<Index*>(a.out)[i] = static_cast<Index>(low - a.is_upper);
  }
}

}  // namespace cuop::jit
