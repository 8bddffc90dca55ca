// Internal: sums of a loop's terms, for *_isa.cpp files alone. Unnamed, so that each instruction
// set compiles its own.
#pragma once

#include <cstdint>

namespace cuop::kernels {
namespace {

/// Sums in as many lanes as the widest vectors have, in double, lane by lane at the end: the same
/// additions at every instruction set.
constexpr int kLanes = 16;

template <class Term>
double sum_in_lanes(int64_t count, Term&& term) {
  double lanes[kLanes] = {};
  int64_t j = 0;
  for (; j + kLanes <= count; j += kLanes) {
#pragma GCC ivdep
    for (int l = 0; l < kLanes; ++l) lanes[l] += term(j + l);
  }
  for (int l = 0; j < count; ++j, ++l) lanes[l] += term(j);
  double total = 0.0;
  for (double lane : lanes) total += lane;
  return total;
}

}  // namespace
}  // namespace cuop::kernels
