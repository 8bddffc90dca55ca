// Copies between a dense tensor and elements at listed offsets of another one. Elements are words
// of 1 to 16 bytes: no arithmetic is done on them.
#pragma once

#include "cuop/jit/kernels/elementwise.cuh"
#include "cuop/ops/index/index_arguments.cuh"

namespace cuop::jit {

/// Gather reads the listed side, scatter writes it. A thread takes `Width` elements of the
/// innermost axis at once, which then lie one after the other on both sides and aligned on the
/// dense one; of the listed side only the offset can tell. Axes is their number, or 0 to ask the
/// arguments. The innermost size counts accesses.
template <class Word, int Width, int Axes, bool IsGather, class Count>
CUOP_FN void listed_copy(const ListedCopy& a) {
  const int axes = Axes > 0 ? Axes : a.axes;
  const Count step = Count(gridDim.x) * blockDim.x;
  for (Count i = Count(blockIdx.x) * blockDim.x + threadIdx.x; i < Count(a.count); i += step) {
    int64_t dense = 0, sparse = 0, listed = 0;
    Count rest = i;
#pragma unroll
    for (int axis = axes - 1; axis >= 0; --axis) {
      const Count next = axis > 0 ? rest / Count(a.sizes[axis]) : Count(0);
      const auto at = static_cast<int64_t>(rest - next * Count(a.sizes[axis]));
      rest = next;
      dense += at * a.dense_strides[axis];
      sparse += at * a.sparse_strides[axis];
      listed += at * a.list_strides[axis];
    }
    const int64_t offset = a.offsets[listed];
    if (!IsGather && offset == kNoOffset) continue;
    Word* const d = static_cast<Word*>(a.dense) + dense;
    Word* const s = static_cast<Word*>(a.sparse) + sparse + offset;
    Word words[Width];
    const bool is_whole = reinterpret_cast<uint64_t>(s) % (Width * sizeof(Word)) == 0;
    if constexpr (IsGather) {
      if (is_whole) {
        load_pack(words, s);
      } else {
        load_strided(words, s, 1);
      }
      store_pack(d, words);
    } else {
      load_pack(words, d);
      if (is_whole) {
        store_pack(s, words);
      } else {
        store_strided(s, words, 1);
      }
    }
  }
}

}  // namespace cuop::jit
