// How many numbers there were, their mean and the squares of their distances from it.
#pragma once

#include "cuop/jit/kernels/prelude.h"

namespace cuop {

struct Moments {
  double count, mean, squares;  ///< squares: sum of (x - mean)^2

  /// By the formula of Chan, Golub and LeVeque (1983).
  CUOP_FN void merge(const Moments& from) {
    if (from.count == 0.0) return;
    if (count == 0.0) {
      *this = from;
      return;
    }
    const double total = count + from.count;
    const double apart = from.mean - mean;
    mean += apart * (from.count / total);
    squares += from.squares + apart * apart * (count * from.count / total);
    count = total;
  }
};

}  // namespace cuop
