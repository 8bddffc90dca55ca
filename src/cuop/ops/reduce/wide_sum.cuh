// What compensated and exact sums share: where elements are, elements as doubles, and results out
// of sums.
#pragma once

#include "cuop/jit/kernels/conversion.h"
#include "cuop/jit/kernels/sharing.cuh"
#include "cuop/ops/reduce/reduce_arguments.cuh"

namespace cuop::jit {

/// In place of a result's type: the state itself is the result.
struct RawState {};
template <class Result>
inline constexpr bool gives_states = false;
template <>
inline constexpr bool gives_states<RawState> = true;

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
  const Places<1>* places;

  CUOP_FN Source operator[](int64_t i) const {
    if constexpr (IsLinear) {
      return first[i * places->innermost_stride(0)];
    } else {
      return first[offsets_at(*places, i).of[0]];
    }
  }
};

CUOP_FN int64_t place_of_result(const WideSum& a, int64_t state) {
  return offsets_at(a.kept, state).of[1];
}

/// Writes the value of a state to its place.
template <class Result>
CUOP_FN void store_sum(const WideSum& a, int64_t state, double value) {
  Result* const place = static_cast<Result*>(a.result) + place_of_result(a, state);
  *place = convert<Result>(value);
}

}  // namespace cuop::jit
