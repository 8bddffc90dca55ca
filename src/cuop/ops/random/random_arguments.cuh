// What the kernels of random numbers are given; host and device read the same struct.
#pragma once

#include "cuop/jit/kernels/narrow.h"

namespace cuop::jit {

/// The binary digits of the uniform numbers of a type.
template <class T>
inline constexpr int uniform_digits = 24;
template <>
inline constexpr int uniform_digits<Half> = 11;
template <>
inline constexpr int uniform_digits<BFloat16> = 8;

/// Numbers drawn from successive counter values; `low` and `range` of integers (range 0 stands for
/// 2^64), the others of floats: mean and standard deviation, or the ends and the largest number
/// below the upper one.
struct RandomFill {
  void* out;
  int64_t count;
  uint64_t seed, counter;
  double first, second, last;
  int64_t low;
  uint64_t range;
};

}  // namespace cuop::jit
