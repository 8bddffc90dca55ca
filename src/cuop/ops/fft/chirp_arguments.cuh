// What the kernel of chirps is given; host and device read the same struct.
#pragma once

#include "cuop/ops/places.cuh"

namespace cuop::jit {

/// j j modulo `modulus`, for 0 <= j < 2^51 and modulus > 0 with j j / modulus < 2^50: the quotient
/// in double precision is right to 2 or less, the rest is exact modulo 2^64.
CUOP_FN int64_t square_modulo(int64_t j, int64_t modulus) {
  const double wide = static_cast<double>(j);
  const int64_t quotient = static_cast<int64_t>(wide * wide / static_cast<double>(modulus));
  const uint64_t product = static_cast<uint64_t>(j) * static_cast<uint64_t>(j);
  int64_t rest = static_cast<int64_t>(product - static_cast<uint64_t>(quotient) *
                                                    static_cast<uint64_t>(modulus));
  while (rest < 0) rest += modulus;
  while (rest >= modulus) rest -= modulus;
  return rest;
}

/// Which factor element `index` of a line gets.
struct ChirpLaw {
  int64_t n;
  int64_t turn, length;  ///< an index from `turn` on is that of length - index
  double scale;
  double end_scale;  ///< of elements 0 and n / 2 where those are real, or become so
  bool ends_are_real, ends_become_real;

  CUOP_FN int64_t unfolded(int64_t index) const { return index < turn ? index : length - index; }
  CUOP_FN bool is_end(int64_t index) const {
    return (ends_are_real || ends_become_real) && (index == 0 || 2 * index == n);
  }
  /// Exponent of the 2n-th root of unity.
  CUOP_FN int64_t exponent(int64_t index) const { return square_modulo(index, 2 * n); }
};

struct ChirpBlock {
  void* block;
  const Complex<double>* coarse;
  const Complex<double>* fine;
  Places<2> places;  ///< of elements, and of their indices in the line
  int64_t count;
  int64_t first;  ///< index of the first one
  ChirpLaw law;
  int shift;
};

}  // namespace cuop::jit
