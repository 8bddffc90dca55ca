// What is done to states of folds that are not values themselves, and what its kernels are given;
// host and device compute from the same lines.
#pragma once

#include "cuop/jit/kernels/compensated.h"
#include "cuop/jit/kernels/exact_sum.h"
#include "cuop/jit/kernels/moments.h"

namespace cuop::jit {

/// What a state becomes.
struct Finish {
  uint64_t count;      ///< elements that it has seen
  bool is_mean;        ///< of sums
  bool is_root;        ///< of variances: standard deviations
  double correction;   ///< of variances
  FloatFormat format;  ///< exact sums are rounded to it
};

CUOP_FN double finished(const Compensated<double>& state, const Finish& finish) {
  const double sum = value(state);
  return finish.is_mean ? sum / static_cast<double>(finish.count) : sum;
}
CUOP_FN double finished(const ExactSum& state, const Finish& finish) {
  return state.round_quotient(finish.is_mean ? finish.count : 1, finish.format);
}
CUOP_FN double finished(const Moments& state, const Finish& finish) {
  const double divisor = static_cast<double>(finish.count) - finish.correction;
  const double variance = state.about_mean() / (divisor > 0.0 ? divisor : 0.0);
  return finish.is_root ? math::sqrt(variance) : variance;
}

inline constexpr int kStateThreads = 128;

struct MergedStates {
  void* into;
  const void* from;
  int64_t count;
};

struct FinishedStates {
  const void* states;
  void* values;
  int64_t count;
  Finish finish;
};

}  // namespace cuop::jit
