// How many pieces of one size cover a length, and what they cover; quotient and rest. Kernel text
// without the prelude: code outside the *_isa.cpp files uses it too, and static so that each
// instruction set keeps its own copy.
#pragma once

#ifndef __CUDACC_RTC__
#include <cstdint>
#endif

namespace cuop {

/// a / b, rounded up; a is not negative and b is positive.
template <class A, class B>
static constexpr auto divide_up(A a, B b) {
  return (a + b - 1) / b;
}
/// The smallest multiple of b that is not below a.
template <class A, class B>
static constexpr auto round_up(A a, B b) {
  return divide_up(a, b) * b;
}

#ifndef __CUDACC_RTC__  // kernels have their own (ops/places.cuh)
/// The largest multiple of b that is not above a.
inline int64_t round_down(int64_t a, int64_t b) { return a / b * b; }
/// a / b and a % b of numbers from 0 on.
struct Divided {
  int64_t quotient, rest;
};
/// Divisions of 64 bits take processors up to four times as long as those of 32.
inline Divided divided(int64_t a, int64_t b) {
  if (((a | b) >> 32) != 0) return {a / b, a % b};
  const auto short_a = static_cast<uint32_t>(a), short_b = static_cast<uint32_t>(b);
  return {short_a / short_b, short_a % short_b};
}
#endif

}  // namespace cuop
