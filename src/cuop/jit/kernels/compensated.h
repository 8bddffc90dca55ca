// Error-free addition and compensated sums, for scalars and for vectors of lanes alike: T needs
// only
// + and -.
#pragma once

#include "cuop/jit/kernels/prelude.h"

namespace cuop {

/// a + b = sum + error exactly, without a branch (Knuth; Moller 1965).
template <class T>
CUOP_FN void two_sum(const T& a, const T& b, T& sum, T& error) {
  sum = a + b;
  const T b_seen = sum - a;
  error = (a - (sum - b_seen)) + (b - b_seen);
}

/// A running sum and the sum of its rounding errors (Neumaier 1974, with Knuth's branch-free
/// two-sum): value() errs by one rounding of the result plus n eps^2 sum|x|.
template <class T>
struct Compensated {
  T sum, error;

  CUOP_FN void add(const T& x) {
    T lost;
    two_sum(T(sum), x, sum, lost);
    error = error + lost;
  }
  CUOP_FN void merge(const Compensated& other) {
    add(other.sum);
    error = error + other.error;
  }
};

/// The sum with its correction. Once an infinity or NaN entered, the errors are meaningless and the
/// plain sum is the IEEE answer.
CUOP_FN double value(const Compensated<double>& total) {
  const double corrected = total.sum + total.error;
  return total.sum - total.sum == 0.0 ? corrected : total.sum;
}

}  // namespace cuop
