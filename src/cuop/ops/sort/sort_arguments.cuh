// What the kernels of sorting are given; host and device read the same structs. Strides are in
// elements.
#pragma once

#include "cuop/ops/sort/sort_key.cuh"

namespace cuop::jit {

inline constexpr int kMaxSortAxes = 32;

/// Keys of lines one after the other, `length` each, and the places their elements came from, which
/// stay unused where only values are sorted.
struct SortedRuns {
  void* keys;
  void* positions;
};

/// Lines of `length` elements that begin at the places of a loop over `axes` axes.
struct SortLines {
  const void* x;
  void* out;  ///< the elements, or int64 positions
  int axes;
  int64_t sizes[kMaxSortAxes];
  int64_t x_strides[kMaxSortAxes], out_strides[kMaxSortAxes];
  int64_t lines, length;
  int64_t x_step, out_step;
  uint64_t infinity;  ///< its bits; 0 for integers
  bool is_descending;

  int width;            ///< places that a tile has for a line, a power of two of at least 8
  int64_t tiles;        ///< of a line, or 1
  int64_t run;          ///< length of the sorted runs in `from` that are merged
  SortedRuns from, to;  ///< where lines have several tiles
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
