// Internal: the chirps by which a transform of any length becomes a convolution (L. I. Bluestein,
// "A linear filtering approach to the computation of discrete Fourier transform", IEEE Trans. Audio
// Electroacoust. 18, 1970): -2 j k = (k - j)^2 - j^2 - k^2.
#pragma once

#include <cstdint>
#include <limits>

#include "cuop/core/tensor.h"
#include "cuop/jit/cuda/kernel_fwd.h"

namespace cuop::spectral {

/// Element [r, c] of a block is that of index j = first + r row_step + c of a line.
struct Chirp {
  int64_t n = 1;  ///< of the transform, below 2^49; indices are below 4 n
  int64_t first = 0;
  int64_t row_step = 0;
  bool is_conjugate = false;  ///< exp(i pi j^2 / n) instead of exp(-i pi j^2 / n)
  /// From this index on that of length - j: what is behind the end lies before the start.
  int64_t turn = std::numeric_limits<int64_t>::max();
  int64_t length = 0;
  double scale = 1;  ///< factor beside
  /// Of half a spectrum: elements 0 and n / 2, which have no mirrored ones, get `end_scale`
  /// instead; of what is given only their real parts count, or what is made is real.
  bool ends_are_real = false, ends_become_real = false;
  double end_scale = 1;
};

/// Multiplies the block [rows, columns] in place: complex64 or complex128, any strides. Squares are
/// taken modulo 2 n in whole numbers, factors are products of two roots of double precision.
void multiply_by_chirp(const Tensor& block, const Chirp& chirp);

/// Bytes of the device that this takes: some 3 sqrt(2 n) roots.
int64_t chirp_bytes(int64_t n);

jit::TextKernel chirp_kernel(DType dtype);

}  // namespace cuop::spectral
