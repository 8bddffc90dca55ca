// Products of float32 matrices that are rounded to 16 bits first, for devices that multiply those
// faster.
#pragma once

#include "cuop/core/tensor.h"

namespace cuop::dist {

/// c = a b, or c += a b, of float32 matrices. Rows of a and columns of b are rounded as
/// exec/narrow.h says; the sums are float32 and are scaled back, so that 1e38, 1e-40 and infinities
/// come out as of a product in float32, and |c - a b| <= k eps sqrt(K) |a| |b| in the Frobenius
/// norm with the eps of `dtype`.
void multiply_narrowed(const Tensor& a, const Tensor& b, DType dtype, bool adds, const Tensor& c);

}  // namespace cuop::dist
