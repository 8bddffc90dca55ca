// Floats as integers: one rule for every device, instruction set and path, where C++ leaves what is
// out of range undefined. Kernel text without the prelude: code outside the *_isa.cpp files uses it
// too, and static so that each instruction set keeps its own copy.
#pragma once

namespace cuop {

/// The fraction is cut off, then the low bits of the 64-bit integer (int64, or uint64 for that
/// dtype) are kept. What that integer does not hold, NaN and infinities included, counts as
/// -2^63: 0 in dtypes of 8 to 32 bits, 2^63 in uint64.
template <class To, class R>
static inline To to_integer(R x) {
  if constexpr (sizeof(To) == 8 && To(-1) > To(0)) {
    if (x >= R(0x1p63) && x < R(0x1p64)) return static_cast<To>(x);
  }
  const bool is_inside = x >= R(-0x1p63) && x < R(0x1p63);
  const long long whole = is_inside ? static_cast<long long>(x) : -0x7fffffffffffffffLL - 1;
  return static_cast<To>(whole);
}

}  // namespace cuop
