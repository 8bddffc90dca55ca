// Indices and masks as tables of offsets, and copies by them.
#pragma once

#include "cuop/jit/kernels/elementwise.cuh"
#include "cuop/jit/kernels/thread_sums.cuh"
#include "cuop/ops/index/index_arguments.cuh"

namespace cuop::jit {

CUOP_FN void list_indices(const IndexList& a) {
  const int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < a.count; i += step) {
    const int64_t given = a.indices[i];
    const int64_t index = given < 0 ? given + a.size : given;
    if (index < 0 || index >= a.size) {
      atomicMin(a.first_bad, static_cast<uint64_t>(i));
    } else {
      a.offsets[i] = index * a.stride;
    }
  }
}

struct alignas(kMaskBytes) MaskBytes {
  uint8_t bytes[kMaskBytes];
};

/// Bit k tells whether element first + k is true and before the end.
CUOP_FN unsigned mask_bits(const MaskTiles& a, int64_t first, int64_t end) {
  unsigned bits = 0;
  const bool is_aligned = reinterpret_cast<uint64_t>(a.mask) % kMaskBytes == 0;
  if (is_aligned && end - first >= kMaskBytes) {
    const MaskBytes all = *reinterpret_cast<const MaskBytes*>(a.mask + first);
#pragma unroll
    for (int k = 0; k < kMaskBytes; ++k) bits |= unsigned(all.bytes[k] != 0) << k;
  } else {
    for (int k = 0; k < kMaskBytes && first + k < end; ++k) {
      bits |= unsigned(a.mask[first + k] != 0) << k;
    }
  }
  return bits;
}

CUOP_FN unsigned true_count(unsigned bits) { return static_cast<unsigned>(__popc(bits)); }

CUOP_FN int64_t end_of_tile(const MaskTiles& a, int64_t tile) {
  return tile + 1 == a.tiles ? a.count : (tile + 1) * a.tile;
}

CUOP_FN void count_mask(const MaskTiles& a) {
  for (int64_t tile = blockIdx.x; tile < a.tiles; tile += gridDim.x) {
    const int64_t end = end_of_tile(a, tile);
    uint64_t found = 0;
    for (int64_t at = tile * a.tile; at < end; at += kMaskStep) {
      const int64_t first = at + int64_t(threadIdx.x) * kMaskBytes;
      unsigned total;
      sum_of_threads_before<kIndexThreads>(true_count(mask_bits(a, first, end)), total);
      found += total;
    }
    if (threadIdx.x == 0) {
      a.in_tile[tile] = found;
      atomicAdd(a.total, found);
    }
  }
}

/// The offset of the element at a position of the flattened mask.
template <class Count>
CUOP_FN int64_t offset_in_mask(const MaskTiles& a, int64_t position) {
  auto rest = static_cast<Count>(position);
  int64_t offset = 0;
  CUOP_ROLLED
  for (int axis = a.axes - 1; axis > 0; --axis) {
    const Count next = rest / Count(a.sizes[axis]);
    offset += static_cast<int64_t>(rest - next * Count(a.sizes[axis])) * a.strides[axis];
    rest = next;
  }
  return offset + static_cast<int64_t>(rest) * a.strides[0];
}

/// After count_mask. Each thread writes the offsets of its own elements, in their order.
template <class Count>
CUOP_FN void list_mask(const MaskTiles& a) {
  __shared__ uint64_t start;
  for (int64_t tile = blockIdx.x; tile < a.tiles; tile += gridDim.x) {
    __syncthreads();  // everybody has read the start of the tile before
    if (threadIdx.x == 0) start = 0;
    __syncthreads();
    uint64_t before = 0;
    for (int64_t k = threadIdx.x; k < tile; k += kIndexThreads) before += a.in_tile[k];
    if (before > 0) atomicAdd(&start, before);
    __syncthreads();
    int64_t* to = a.offsets + start;
    const int64_t end = end_of_tile(a, tile);
    for (int64_t at = tile * a.tile; at < end; at += kMaskStep) {
      const int64_t first = at + int64_t(threadIdx.x) * kMaskBytes;
      unsigned bits = mask_bits(a, first, end), total;
      int64_t* mine = to + sum_of_threads_before<kIndexThreads>(true_count(bits), total);
      for (; bits != 0; bits &= bits - 1) {
        const int k = __ffs(static_cast<int>(bits)) - 1;
        *mine++ = offset_in_mask<Count>(a, first + k);
      }
      to += total;
    }
  }
}

/// Where the search for an offset begins: the high bits of its product with 2^64 / golden ratio.
CUOP_FN int64_t place_of(int64_t offset, int bits) {
  return static_cast<int64_t>((static_cast<uint64_t>(offset) * 0x9E3779B97F4A7C15ull) >>
                              (64 - bits));
}

/// Enters every offset with the last position that names it.
CUOP_FN void enter_offsets(const RepeatedOffsets& a) {
  const int64_t step = int64_t(gridDim.x) * blockDim.x, places = int64_t{1} << a.bits;
  auto* keys = reinterpret_cast<uint64_t*>(a.keys);
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < a.count; i += step) {
    const int64_t offset = a.offsets[i];
    int64_t place = place_of(offset, a.bits);
    while (true) {
      const auto found = static_cast<int64_t>(
          atomicCAS(keys + place, static_cast<uint64_t>(kNoOffset), static_cast<uint64_t>(offset)));
      if (found == kNoOffset || found == offset) break;
      place = (place + 1) % places;
    }
    atomicMax(a.last + place, i);
  }
}

/// After enter_offsets.
CUOP_FN void keep_last_offsets(const RepeatedOffsets& a) {
  const int64_t step = int64_t(gridDim.x) * blockDim.x, places = int64_t{1} << a.bits;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < a.count; i += step) {
    const int64_t offset = a.offsets[i];
    int64_t place = place_of(offset, a.bits);
    while (a.keys[place] != offset) place = (place + 1) % places;
    a.kept[i] = a.last[place] == i ? offset : kNoOffset;
  }
}

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
