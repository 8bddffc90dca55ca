// What this machine can do at best, measured once a process on first use: the yardstick of
// profiles.
#pragma once

#include "cuop/operators/task.h"

namespace cuop {

struct Roof {
  double flops_per_second = 0.0;  ///< of a large matrix product; 0 when there is no BLAS library
  double bytes_per_second = 0.0;  ///< read and written, of a large copy in memory
};

/// For float32 or float64. Takes some tens of milliseconds the first time.
const Roof& measured_roof(DType dtype);

/// The time that the roofs allow at best, over the time that was needed, times 100. Work within the
/// caches can exceed 100, because the roof is that of memory. 0 when either is unknown.
double percent_of_roof(const Cost& cost, double milliseconds, DType dtype);

}  // namespace cuop
