// What the kernel of sparse layouts is given; host and device read the same struct.
#pragma once

#include "cuop/jit/kernels/prelude.h"

namespace cuop::jit {

/// `sorted` are numbers that never fall. With `is_upper` 0 out[i] is how many of them are below i,
/// with 1 how many are up to i, less one.
struct RowSearch {
  const void* sorted;
  void* out;
  int64_t sorted_count, count;
  int64_t is_upper;
};

}  // namespace cuop::jit
