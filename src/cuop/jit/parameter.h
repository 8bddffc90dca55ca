// The numbers of an expression as kernels take them.
#pragma once

#include "cuop/core/scalar.h"
#include "cuop/jit/kernels/conversion.h"

namespace cuop::jit {

/// A real number as a float of any width, rounded once: integers are not doubles on the way.
/// DTypeError for a complex number.
template <class Real>
Real rounded_number(const Scalar& value) {
  if (value.is_large()) return convert<Real>(value.to_bits64());
  if (value.is_integer()) return convert<Real>(value.to_int64());
  return convert<Real>(value.to_double());
}

/// Writes the value in the dtype of its node, or in float32 rounded to a 16-bit one; at most 16
/// bytes.
void store_parameter(const Scalar& value, DType dtype, void* out);

}  // namespace cuop::jit
