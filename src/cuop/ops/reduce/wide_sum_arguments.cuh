// What the kernels of compensated and exact sums are given; host and device read the same structs.
#pragma once

#include "cuop/ops/places.cuh"

namespace cuop::jit {

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

}  // namespace cuop::jit
