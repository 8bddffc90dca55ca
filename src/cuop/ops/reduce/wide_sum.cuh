// What compensated and exact sums share: where elements are, elements as doubles, and results out
// of sums.
#pragma once

#include "cuop/jit/kernels/conversion.h"
#include "cuop/jit/kernels/sharing.cuh"
#include "cuop/ops/reduce/wide_sum_arguments.cuh"

namespace cuop::jit {

inline constexpr int kSumThreads = 256;

/// In place of a result's type: the state itself is the result.
struct RawState {};
template <class Result>
inline constexpr bool gives_states = false;
template <>
inline constexpr bool gives_states<RawState> = true;

/// Of numbers of 32 bits, as most are, without the routine that divides longer ones.
CUOP_FN int64_t quotient(int64_t a, int64_t b) {
  if (((a | b) >> 32) == 0) return static_cast<uint32_t>(a) / static_cast<uint32_t>(b);
  return a / b;
}

/// `index` counts along `count` loops of these sizes.
CUOP_FN int64_t offset_along(int count, const int64_t* sizes, const int64_t* strides,
                             int64_t index) {
  int64_t offset = 0;
  CUOP_ROLLED
  for (int axis = count - 1; axis > 0; --axis) {
    const int64_t next = quotient(index, sizes[axis]);
    offset += (index - next * sizes[axis]) * strides[axis];
    index = next;
  }
  return offset + index * strides[0];
}
CUOP_FN int64_t offset_along(const SumAxes& axes, int64_t index) {
  return offset_along(axes.count, axes.sizes, axes.strides, index);
}

/// An element as a double; 16-bit floats go through float, which holds all numbers of 16 bits.
template <class Source>
CUOP_FN double as_double(Source x) {
  if constexpr (sizeof(Source) == 2) {
    return static_cast<double>(static_cast<float>(x));
  } else {
    return static_cast<double>(x);
  }
}

/// The elements that are added up for one state. Linear ones are one stride apart; of others each
/// place is found by itself.
template <class Source, bool IsLinear>
struct Elements {
  /// How many reads are worth having in flight: finding a place takes longer than reading it, and
  /// more code than is worth repeating.
  static constexpr int unrolled(int many) { return IsLinear ? many : 1; }

  const Source* first;
  const SumAxes* axes;

  CUOP_FN Source operator[](int64_t i) const {
    if constexpr (IsLinear) {
      return first[i * axes->strides[axes->count - 1]];
    } else {
      return first[offset_along(*axes, i)];
    }
  }
};

CUOP_FN int64_t place_of_result(const WideSum& a, int64_t state) {
  return offset_along(a.kept.count, a.kept.sizes, a.result_strides, state);
}

/// Writes the value of a state to its place.
template <class Result>
CUOP_FN void store_sum(const WideSum& a, int64_t state, double value) {
  Result* const place = static_cast<Result*>(a.result) + place_of_result(a, state);
  if constexpr (sizeof(Result) == 2) {
    *place = narrowed<Result>(static_cast<float>(value));
  } else {
    *place = static_cast<Result>(value);
  }
}

}  // namespace cuop::jit
