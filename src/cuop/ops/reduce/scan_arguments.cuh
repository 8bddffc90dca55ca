// What the kernels of running sums are given; host and device read the same struct.
#pragma once

#include "cuop/ops/places.cuh"

namespace cuop::jit {

/// out = running sums of x along lines.
struct Scan {
  LinePair lines;

  /// A line in tiles that blocks take one after the other, first come, first served.
  int64_t tiles;
  unsigned* ticket;     ///< 0; the next tile of all lines
  unsigned* has_sum;    ///< zeros, [lines][tiles]
  unsigned* has_start;  ///< zeros, [lines][groups of tiles]
  void* sums;           ///< of the tiles
  void* starts;         ///< of all tiles before a group
};

}  // namespace cuop::jit
