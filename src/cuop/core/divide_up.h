// How many pieces of one size cover a length.
#pragma once

#include <cstdint>

namespace cuop {

/// a / b, rounded up; a is not negative and b is positive.
constexpr int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace cuop
