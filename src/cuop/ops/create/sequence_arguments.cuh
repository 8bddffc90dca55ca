// The numbers of arange, linspace and logspace by their place: host and device compute them from
// the same lines, so that their bits are the same.
#pragma once

#include "cuop/ops/create/powers.cuh"

namespace cuop::jit {

/// first + i * by, exactly, where every number is one of int64 or uint64.
struct WholeSequence {
  uint64_t first, by;                      ///< modulo 2^64
  int64_t large_begin = 0, large_end = 0;  ///< the places whose numbers int64 does not hold

  CUOP_FN bool is_large(int64_t i) const { return i >= large_begin && i < large_end; }
  CUOP_FN uint64_t bits(int64_t i) const { return first + static_cast<uint64_t>(i) * by; }
};

/// first + i * by in double precision, but for one place that is given.
struct RealSequence {
  double first, by;
  int64_t given_place = -1;
  double given = 0;
  int64_t is_floored = 0;  ///< 0 or 1

  CUOP_FN double value(int64_t i) const {
    const double wanted = i == given_place ? given : first + static_cast<double>(i) * by;
    return is_floored != 0 ? math::floor(wanted) : wanted;
  }
};

/// Powers of one base.
struct PowerSequence {
  PowerBase base;
  RealSequence exponents;

  CUOP_FN double value(int64_t i) const { return base.to_the(exponents.value(i)); }
};

template <class Sequence>
struct SequenceFill {
  void* out;
  int64_t count;
  Sequence sequence;
};
using WholeFill = SequenceFill<WholeSequence>;
using RealFill = SequenceFill<RealSequence>;
using PowerFill = SequenceFill<PowerSequence>;

}  // namespace cuop::jit
