// What the kernels of sorting are given; host and device read the same structs.
#pragma once

#include "cuop/ops/places.cuh"
#include "cuop/ops/sort/sort_key.cuh"

namespace cuop::jit {

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
