// Whether two ways to compute a tensor came to the same.
#pragma once

#include <string>

#include "cuop/core/tensor.h"

namespace cuop {

/// "", or the first difference between two results of one computation that rounding does not
/// explain: NaN agrees with NaN, floating elements within a tolerance of the largest one's size,
/// everything else exactly. Tensors of a GPU are compared in host memory.
std::string disagreement(const Tensor& expected, const Tensor& result);
bool results_agree(const Tensor& expected, const Tensor& result);

}  // namespace cuop
