// Internal: what stands between the two steps of a transform that is made as a matrix.
#pragma once

#include <cstdint>

#include "cuop/core/tensor.h"
#include "cuop/jit/cuda/kernel_fwd.h"

namespace cuop::spectral {

/// Element [.., k, .., j, ..] of a block is that of row first_row + k and column first_column + j
/// of a matrix of n elements, so that row times column stays below n.
struct Twiddles {
  int64_t n = 1;
  int row_axis = 0;
  int64_t first_row = 0;
  int column_axis = 1;
  int64_t first_column = 0;
  bool is_inverse = false;
};

/// Multiplies the block in place by exp(-2 pi i row column / n), or its conjugate of the inverse:
/// complex64 or complex128, any strides. Factors are products of two roots of double precision.
void multiply_by_twiddles(const Tensor& block, const Twiddles& twiddles);

/// Bytes of the device that this takes: some 3 sqrt(n) roots.
int64_t twiddle_bytes(int64_t n);

jit::TextKernel twiddle_kernel(DType dtype);

}  // namespace cuop::spectral
