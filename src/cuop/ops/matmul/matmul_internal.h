// Internal: the checked product behind matmul and its relatives.
#pragma once

#include "cuop/core/scalar.h"
#include "cuop/core/tensor.h"
#include "cuop/ops/linalg_options.h"

namespace cuop {

/// matmul under another name in errors and traces, of conj(a) when asked.
Tensor product(const char* who, const Tensor& a, const Tensor& b, const MatmulOptions& options,
               bool conjugate_a, const Tensor* out);

bool is_zero(const Scalar& value);

/// c <- beta * c, which is all of a product of nothing: c is not read for a beta of 0.
void scale_result(const Tensor& c, const Scalar& beta);

/// Throws unless the dtype of the result can hold the coefficient: ExecutionError for a complex
/// number beside real elements or a fraction beside integers, DTypeError for one out of their
/// range.
void check_coefficient(const char* who, const char* name, const Scalar& value, DType dtype);

/// As above; a beta other than 0 also needs an output to scale.
void check_beta(const char* who, const Scalar& beta, DType dtype, const Tensor* out);

}  // namespace cuop
