// A block of a matrix times the roots of unity that belong to its rows and columns, in place.
#pragma once

#include "cuop/ops/fft/twiddle_arguments.cuh"

namespace cuop::jit {

template <class Real>
CUOP_FN Complex<double> widened(Complex<Real> z) {
  return {static_cast<double>(z.real()), static_cast<double>(z.imag())};
}

/// Without the checks for infinities that the host's products make.
CUOP_FN Complex<double> plain_product(Complex<double> a, Complex<double> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

template <class Real>
CUOP_FN void multiply_by_twiddles(const TwiddleBlock& a) {
  const int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < a.count; i += step) {
    const PlaceOffsets<3> at = offsets_at(a.places, i);
    const int64_t exponent = (a.first_row + at.of[1]) * (a.first_column + at.of[2]);
    const int64_t mask = (int64_t{1} << a.shift) - 1;
    Complex<Real>& element = static_cast<Complex<Real>*>(a.block)[at.of[0]];
    const Complex<double> root =
        plain_product(a.coarse[exponent >> a.shift], a.fine[exponent & mask]);
    const Complex<double> product = plain_product(widened(element), root);
    element = {static_cast<Real>(product.real()), static_cast<Real>(product.imag())};
  }
}

}  // namespace cuop::jit
