// What the kernels of compensated, exact and running sums are given; host and device read the same
// structs.
#pragma once

#include "cuop/ops/places.cuh"

namespace cuop::jit {

inline constexpr int kSumThreads = 256;
/// Columns of a block where sums run along them.
inline constexpr int kSumColumns = 32;

/// Sums over the axes `reduced` for each place along `kept`.
struct WideSum {
  const void* x;
  void* result;            ///< elements or states
  Places<2> kept;          ///< of x and the result
  Places<1> reduced;       ///< of x
  int64_t states, length;  ///< places along `kept` and along `reduced`
  uint64_t divisor;        ///< of means; 0 for sums

  /// Units of work that blocks take: `parts` of each state or group of states, merged by the block
  /// that finishes last.
  int64_t units, parts;
  int64_t chunk;   ///< compensated: elements (rows) that have states of their own. exact: of a part
  void* partials;  ///< where parts > 1
  unsigned* arrivals;  ///< zeros, one for each group of units; zeros again afterwards
};

/// The states of neighbouring rows that were folded side by side, and of those that were left over.
struct JoinedSum {
  const void* wide;  ///< [outer][join][width]
  const void* rest;  ///< [outer][width], or null
  int64_t width, join;
  WideSum sum;
};

inline constexpr int kScanThreads = 256;
/// Elements of a thread, of a tile; tiles of a group.
inline constexpr int kScanItems = 8, kScanTile = kScanItems * kScanThreads;
inline constexpr int kScanGroup = kScanThreads;

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
