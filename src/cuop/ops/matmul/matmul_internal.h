// Internal: the checked product behind matmul and its relatives.
#pragma once

#include "cuop/core/tensor.h"
#include "cuop/ops/linalg_options.h"

namespace cuop {

/// matmul under another name in errors and traces, of conj(a) when asked.
Tensor product(const char* who, const Tensor& a, const Tensor& b, const MatmulOptions& options,
               bool conjugate_a, const Tensor* out);

}  // namespace cuop
