// What the kernels of indexing are given; host and device read the same structs. Strides and
// offsets are in elements.
#pragma once

#include "cuop/jit/kernels/prelude.h"

namespace cuop::jit {

inline constexpr int kIndexThreads = 256;
/// Mask elements that one thread looks at together, and that a block's threads take at once.
inline constexpr int kMaskBytes = 16, kMaskStep = kMaskBytes * kIndexThreads;

/// Stands in a table of offsets for an element that is not written, and in a table of keys for no
/// key. Eight equal bytes, so that filling memory by bytes makes it; no offset is that far away.
inline constexpr int64_t kNoOffset = static_cast<int64_t>(0x8080808080808080ull);
inline constexpr int kNoOffsetByte = 0x80;

/// No tensor has more, the listed one among them.
inline constexpr int kMaxListedAxes = 32;

/// Element i of a loop over `axes` axes lies at dense + sum(dense_strides) and, on the other side,
/// at sparse + sum(sparse_strides) + offsets[sum(list_strides)].
struct ListedCopy {
  void* dense;
  void* sparse;
  const int64_t* offsets;
  int64_t count;
  int axes;
  int64_t sizes[kMaxListedAxes];
  int64_t dense_strides[kMaxListedAxes];
  int64_t sparse_strides[kMaxListedAxes];
  int64_t list_strides[kMaxListedAxes];
};

/// offsets[i] = indices[i] * stride, counted from the end where negative; the smallest i whose
/// index is outside of the axis goes to first_bad, which starts with all bits set.
struct IndexList {
  const int64_t* indices;
  int64_t* offsets;
  uint64_t* first_bad;
  int64_t count, size, stride;
};

/// The elements of a mask in tiles: how many are true, and where each of them lies.
struct MaskTiles {
  const uint8_t* mask;
  int64_t count;  ///< elements
  int64_t tiles;
  int64_t tile;       ///< elements of each but the last, a multiple of what a block takes at once
  uint64_t* in_tile;  ///< true elements of each tile
  uint64_t* total;    ///< of all tiles; starts with 0
  int64_t* offsets;
  int axes;
  int64_t sizes[kMaxListedAxes];
  int64_t strides[kMaxListedAxes];
};

/// A table of offsets where some may be named several times: `kept` becomes the same table with
/// kNoOffset in place of all but the last of each. keys and last are a hash table of 2^bits places
/// filled with kNoOffset.
struct RepeatedOffsets {
  const int64_t* offsets;
  int64_t* kept;
  int64_t count;
  int bits;
  int64_t* keys;
  int64_t* last;  ///< the largest position of the key in `offsets`
};

}  // namespace cuop::jit
