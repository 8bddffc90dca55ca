// What the kernels of running sums are given; host and device read the same struct. Strides are in
// elements.
#pragma once

#include "cuop/jit/kernels/prelude.h"

namespace cuop::jit {

inline constexpr int kMaxScanAxes = 32;

/// out = running sums of x along lines of `length` elements, which begin at the places of a loop
/// over `axes` axes.
struct Scan {
  const void* x;
  void* out;
  int axes;
  int64_t sizes[kMaxScanAxes];
  int64_t x_strides[kMaxScanAxes], out_strides[kMaxScanAxes];
  int64_t lines, length;
  int64_t x_step, out_step;

  /// A line in tiles that blocks take one after the other, first come, first served.
  int64_t tiles;
  unsigned* ticket;     ///< 0; the next tile of all lines
  unsigned* has_sum;    ///< zeros, [lines][tiles]
  unsigned* has_start;  ///< zeros, [lines][groups of tiles]
  void* sums;           ///< of the tiles
  void* starts;         ///< of all tiles before a group
};

}  // namespace cuop::jit
