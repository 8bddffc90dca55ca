#include "tests/simulator/fourier.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <numbers>

namespace cuop::simulator {

namespace {

using Line = std::vector<std::complex<double>>;

/// exp(i pi numerator / denominator)
std::complex<double> turn(double numerator, double denominator) {
  return std::polar(1.0, std::numbers::pi * numerator / denominator);
}

/// By radix 2, for lengths that are powers of two.
void transform_halves(Line& line, int sign) {
  const size_t n = line.size();
  for (size_t i = 1, mirrored = 0; i < n; ++i) {
    size_t bit = n >> 1;
    for (; (mirrored & bit) != 0; bit >>= 1) mirrored ^= bit;
    mirrored ^= bit;
    if (i < mirrored) std::swap(line[i], line[mirrored]);
  }
  for (size_t half = 1; half < n; half *= 2) {
    for (size_t k = 0; k < half; ++k) {
      const auto factor = turn(sign * static_cast<double>(k), static_cast<double>(half));
      for (size_t first = k; first < n; first += 2 * half) {
        const auto even = line[first], odd = factor * line[first + half];
        line[first] = even + odd;
        line[first + half] = even - odd;
      }
    }
  }
}

/// Bluestein's: with j k = (j^2 + k^2 - (k - j)^2) / 2 the transform is a convolution.
void transform_by_convolution(Line& line, int sign) {
  const size_t n = line.size(), padded = std::bit_ceil(2 * n - 1);
  Line chirp(n), a(padded), b(padded);
  for (size_t k = 0; k < n; ++k) {
    const auto square = static_cast<double>(k * k % (2 * n));  // the turn repeats itself
    chirp[k] = turn(sign * square, static_cast<double>(n));
    a[k] = line[k] * chirp[k];
    b[k] = std::conj(chirp[k]);
    if (k > 0) b[padded - k] = b[k];
  }
  transform_halves(a, 1);
  transform_halves(b, 1);
  for (size_t i = 0; i < padded; ++i) a[i] *= b[i];
  transform_halves(a, -1);
  for (size_t k = 0; k < n; ++k) line[k] = chirp[k] * a[k] / static_cast<double>(padded);
}

}  // namespace

void fourier_transform(Line& line, int sign) {
  if (std::has_single_bit(line.size())) {
    transform_halves(line, sign);
  } else {
    transform_by_convolution(line, sign);
  }
}

}  // namespace cuop::simulator
