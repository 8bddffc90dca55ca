// A block of a line times the chirp that belongs to it, in place.
#pragma once

#include "cuop/ops/fft/chirp_arguments.cuh"
#include "cuop/ops/fft/twiddle.cuh"

namespace cuop::jit {

template <class Real>
CUOP_FN void multiply_by_chirp(const ChirpBlock& a) {
  const int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < a.count; i += step) {
    const PlaceOffsets<2> at = offsets_at(a.places, i);
    const int64_t index = a.law.unfolded(a.first + at.of[1]);
    const int64_t exponent = a.law.exponent(index);
    const int64_t mask = (int64_t{1} << a.shift) - 1;
    const Complex<double> root =
        plain_product(a.coarse[exponent >> a.shift], a.fine[exponent & mask]);
    Complex<Real>& element = static_cast<Complex<Real>*>(a.block)[at.of[0]];
    const Complex<double> given = widened(element);
    const bool is_end = a.law.is_end(index);
    const bool is_real = is_end && a.law.ends_are_real;
    const double scale = is_end ? a.law.end_scale : a.law.scale;
    const Complex<double> product =
        plain_product({given.real(), is_real ? 0.0 : given.imag()}, root);
    const bool becomes_real = is_end && a.law.ends_become_real;
    element = {static_cast<Real>(product.real() * scale),
               becomes_real ? Real(0) : static_cast<Real>(product.imag() * scale)};
  }
}

}  // namespace cuop::jit
