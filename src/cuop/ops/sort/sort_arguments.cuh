// What the kernels of sorting are given; host and device read the same structs.
#pragma once

#include "cuop/jit/kernels/prelude.h"
#include "cuop/ops/places.cuh"

namespace cuop::jit {

/// What the bits of a number mean.
enum class NumberKind { kUnsigned, kSigned, kFloating };

/// The key's order is the number's, with every NaN at the top; `infinity` are the bits of +inf of
/// floating numbers. With `IsMerging`, -0 becomes 0 and all NaN become one: equal elements have
/// equal keys. Without, `decode_key` restores all but a NaN's sign.
template <NumberKind Kind, bool IsMerging, class Key>
CUOP_FN Key encode_key(Key bits, Key infinity) {
  constexpr Key kSign = static_cast<Key>(Key{1} << (8 * sizeof(Key) - 1));
  if constexpr (Kind == NumberKind::kFloating) {
    const Key size = static_cast<Key>(bits & ~kSign);
    if (size > infinity) return static_cast<Key>(IsMerging ? ~Key{0} : bits | kSign);
    if (IsMerging && size == 0) bits = 0;
    return static_cast<Key>((bits & kSign) != 0 ? ~bits : bits | kSign);
  } else if constexpr (Kind == NumberKind::kSigned) {
    return static_cast<Key>(bits ^ kSign);
  } else {
    return bits;
  }
}

template <NumberKind Kind, class Key>
CUOP_FN Key decode_key(Key key) {
  constexpr Key kSign = static_cast<Key>(Key{1} << (8 * sizeof(Key) - 1));
  if constexpr (Kind == NumberKind::kFloating) {
    return static_cast<Key>((key & kSign) != 0 ? key & ~kSign : ~key);
  } else if constexpr (Kind == NumberKind::kSigned) {
    return static_cast<Key>(key ^ kSign);
  } else {
    return key;
  }
}

inline constexpr int kSortThreads = 256;
/// Records of a thread and of a tile that is sorted at once.
inline constexpr int kSortItems = 8, kSortTile = kSortItems * kSortThreads;

/// Of a digit; each has a thread that looks after it.
inline constexpr int kDigitValues = kSortThreads;
/// Records of a thread, given the bytes of one: a tile has 32 KiB at most.
CUOP_FN constexpr int digit_items(int64_t bytes) { return bytes <= 8 ? 16 : 8; }

/// Lines to be sorted: elements become elements, or int64 positions.
struct SortOrder {
  LinePair lines;
  uint64_t infinity;  ///< its bits; 0 for integers
  bool is_descending;
};

/// Keys of lines one after the other, and the places their elements came from, which stay unused
/// where only values are sorted.
struct SortedRuns {
  void* keys;
  void* positions;
};

/// Tiles, and runs that are merged.
struct SortLines {
  SortOrder order;
  int width;            ///< places that a tile has for a line, a power of two of at least 8
  int64_t tiles;        ///< of a line, or 1
  int64_t run;          ///< length of the sorted runs in `from` that are merged
  SortedRuns from, to;  ///< where lines have several tiles
};

/// Long lines by the digits of their keys. Scratch memory begins as zeros.
struct DigitSort {
  SortOrder order;
  int digit;             ///< the one that is sorted by, counted from the least significant
  int64_t stretch;       ///< elements that a block counts at a time
  int64_t stretches;     ///< of a line
  int64_t tiles;         ///< of a line
  SortedRuns even, odd;  ///< what the passes over a line leave, in turns
  uint64_t* starts;      ///< [lines][digits][256]: elements of smaller digits
  uint64_t* words;       ///< [lines][tiles][256]: what tiles tell those behind them
  unsigned* arrivals;    ///< [lines]: blocks that have counted
  unsigned* needed;      ///< [lines]: a bit for each digit that a line must be sorted by
  unsigned* tickets;     ///< [digits]: the next tile of all lines
};

/// starts[i] = whether x[order[i]] differs from x[order[i - 1]].
struct RunStarts {
  const void* x;
  const int64_t* order;
  bool* starts;
  int64_t count;
  uint64_t infinity;
};

}  // namespace cuop::jit
