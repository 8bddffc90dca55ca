// What the kernel of twiddle factors is given; host and device read the same struct.
#pragma once

#include "cuop/ops/places.cuh"

namespace cuop::jit {

/// Exponents e = row column < n are taken apart: root(e) = coarse[e >> shift] fine[e & mask].
struct TwiddleBlock {
  void* block;
  const Complex<double>* coarse;
  const Complex<double>* fine;
  Places<3> places;  ///< of elements, and of rows and columns in the block
  int64_t count;
  int64_t first_row, first_column;
  int shift;
};

}  // namespace cuop::jit
