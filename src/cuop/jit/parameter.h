// The numbers of an expression as kernels take them.
#pragma once

#include "cuop/core/scalar.h"

namespace cuop::jit {

/// A real number as a Half, BFloat16, float or double, rounded once: integers are not doubles on
/// the way. DTypeError for a complex number.
template <class Real>
Real rounded_number(const Scalar& value);

/// Writes the value in the dtype of its node, or in float32 rounded to a 16-bit one; at most 16
/// bytes.
void store_parameter(const Scalar& value, DType dtype, void* out);

}  // namespace cuop::jit
