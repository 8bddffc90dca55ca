// Division by a number that many are divided by, as a product and a shift (Granlund and Montgomery,
// "Division by invariant integers using multiplication", 1994). Host and device read one struct.
#pragma once

#include "cuop/jit/kernels/prelude.h"

#ifndef __CUDACC_RTC__
#include <bit>
#endif

namespace cuop::jit {

/// From 1 to 2^31 - 1.
struct Divisor {
  uint32_t by, multiplier, shift;
};

#ifndef __CUDACC_RTC__
constexpr Divisor make_divisor(uint32_t by) {
  const auto shift = static_cast<uint32_t>(std::bit_width(by - 1));
  const uint64_t beyond = (uint64_t{1} << shift) - by;
  return {by, static_cast<uint32_t>((beyond << 32) / by + 1), shift};
}
#endif

/// Of a number below 2^31.
CUOP_FN constexpr uint32_t quotient(uint32_t number, const Divisor& divisor) {
  const auto high = static_cast<uint32_t>((uint64_t{number} * divisor.multiplier) >> 32);
  return (high + number) >> divisor.shift;
}

}  // namespace cuop::jit
