// Internal: alpha and beta of the products and of the BLAS operations.
#pragma once

#include "cuop/core/scalar.h"
#include "cuop/core/tensor.h"

namespace cuop {

bool is_zero(const Scalar& value);

/// Throws unless the dtype of the result can hold the coefficient: ExecutionError for a complex
/// number beside real elements or a fraction beside integers, DTypeError for one out of their
/// range.
void check_coefficient(const char* who, const char* name, const Scalar& value, DType dtype);

/// As above; a beta other than 0 also needs an output to scale.
void check_beta(const char* who, const Scalar& beta, DType dtype, const Tensor* out);

}  // namespace cuop
