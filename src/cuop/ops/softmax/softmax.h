// Softmax and its logarithm along one axis.
#pragma once

#include <cstdint>

#include "cuop/core/tensor.h"

namespace cuop {

/// exp(x - max) / sum(exp(x - max)) along `axis`: never overflows, rows sum to 1. Floating dtypes
/// (float16 and bfloat16 in float32); shape and dtype of x. `out` may be x itself. A row that holds
/// NaN or +inf, or only -inf, is NaN throughout.
Tensor softmax(const Tensor& x, int64_t axis = -1, const Tensor* out = nullptr);

/// x - max - log(sum(exp(x - max))) along `axis`: accurate where softmax underflows. Rules as
/// above.
Tensor log_softmax(const Tensor& x, int64_t axis = -1, const Tensor* out = nullptr);

}  // namespace cuop
