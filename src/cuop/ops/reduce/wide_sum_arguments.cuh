// What the kernels of compensated and exact sums are given; host and device read the same structs.
// Strides are in elements.
#pragma once

#include "cuop/jit/kernels/prelude.h"

namespace cuop::jit {

/// No tensor has more.
inline constexpr int kMaxSumAxes = 32;

/// Loops from the outermost to the innermost, at least one.
struct SumAxes {
  int count;
  int64_t sizes[kMaxSumAxes];
  int64_t strides[kMaxSumAxes];
};

/// Sums over the axes `reduced` for each place along `kept`.
struct WideSum {
  const void* x;
  void* result;  ///< elements or states, at result_strides along `kept`
  SumAxes kept, reduced;
  int64_t result_strides[kMaxSumAxes];
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

}  // namespace cuop::jit
