// Rounding to decimal places.
#pragma once

#include "cuop/core/tensor.h"

namespace cuop {

/// x rounded to multiples of 10^-decimals, halves to even, of x's dtype. Floats are scaled in their
/// own dtype as NumPy's are, those of 16 bits in float32; beyond ten places all in float64.
/// Integers are exact where the dtype holds the multiple. Complex numbers are rounded by parts.
/// DTypeError for bool.
Tensor round_decimals(const Tensor& x, int64_t decimals, const Tensor* out = nullptr);

}  // namespace cuop
