// What the kernels of compensated, exact and running sums are given; host and device read the same
// structs.
#pragma once

#include "cuop/core/divide_up.h"
#include "cuop/ops/places.cuh"

namespace cuop::jit {

inline constexpr int kSumThreads = 256;
/// Columns of a block where sums run along them.
inline constexpr int kSumColumns = 32;
/// Threads of a block of compensated sums of rows: a warp for each chunk of its part.
inline constexpr int kSumRowThreads = 128;
/// Parts of a state that one block merges, of compensated sums of rows and of columns, for whose
/// order they are powers of two, and of exact sums.
inline constexpr int kRowPartsTogether = 256, kColumnPartsTogether = 64, kExactPartsTogether = 32;
/// Groups of so many parts, and groups of groups, down to one: each has a last block.
CUOP_FN constexpr int64_t groups_of_parts(int64_t parts, int64_t together) {
  int64_t groups = 0;
  do {
    parts = divide_up(parts, together);
    groups += parts;
  } while (parts > 1);
  return groups;
}

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
  unsigned* arrivals;  ///< zeros, one for each group of units or parts; zeros again afterwards
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
