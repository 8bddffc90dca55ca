// Reductions of a tensor over some or all of its axes.
//
// Common rules. Reduced axes disappear from the shape, or stay with size 1 when `keepdims`. Any
// strides. `out`, when given, receives the result and must have its shape and dtype. Reducing over
// no element is the operation's identity (sum 0, prod 1, any false, all true) or, where there is
// none (max, min, argmax, argmin), a ShapeError. float16 and bfloat16 are computed in float32 and
// rounded once. NaN propagates. A result depends on shape and strides only, never on the number of
// threads.
#pragma once

#include <cstdint>
#include <optional>

#include "cuop/core/tensor.h"
#include "cuop/ops/reduce/axes.h"
#include "cuop/ops/reduce/sum_mode.h"

namespace cuop {

/// Sum. Bool and signed integers give int64, unsigned integers uint64, others their own dtype.
Tensor sum(const Tensor& x, Axes axes = {}, bool keepdims = false, SumMode mode = SumMode::kPlain,
           const Tensor* out = nullptr);
/// Arithmetic mean; bool and integers give float64. NaN over no element. With kExact the quotient
/// of the true sum is rounded once.
Tensor mean(const Tensor& x, Axes axes = {}, bool keepdims = false, SumMode mode = SumMode::kPlain,
            const Tensor* out = nullptr);
/// Product; result dtype as for `sum`.
Tensor prod(const Tensor& x, Axes axes = {}, bool keepdims = false, const Tensor* out = nullptr);

/// Largest and smallest element, of the dtype of x; not for complex.
Tensor max(const Tensor& x, Axes axes = {}, bool keepdims = false, const Tensor* out = nullptr);
Tensor min(const Tensor& x, Axes axes = {}, bool keepdims = false, const Tensor* out = nullptr);

/// int64 position of the first largest (smallest) element along `axis`, or in row-major order of
/// the whole tensor; the first NaN wins. Not for complex.
Tensor argmax(const Tensor& x, std::optional<int64_t> axis = std::nullopt, bool keepdims = false,
              const Tensor* out = nullptr);
Tensor argmin(const Tensor& x, std::optional<int64_t> axis = std::nullopt, bool keepdims = false,
              const Tensor* out = nullptr);

/// Whether any (every) element is nonzero; NaN counts as nonzero. Result is bool.
Tensor any(const Tensor& x, Axes axes = {}, bool keepdims = false, const Tensor* out = nullptr);
Tensor all(const Tensor& x, Axes axes = {}, bool keepdims = false, const Tensor* out = nullptr);

/// Vector norm (sum |x|^ord)^(1/ord) of all elements over the axes: ord = 2 Euclid, 1, +inf largest
/// and -inf smallest magnitude, 0 the count of nonzeros, any other real number. Integers give
/// float64, complex their real dtype. Euclid's norm neither overflows nor underflows on the way.
Tensor norm(const Tensor& x, double ord = 2.0, Axes axes = {}, bool keepdims = false,
            const Tensor* out = nullptr);

/// Variance and standard deviation with divisor max(0, n - correction): 0 for a population, 1 for
/// an unbiased estimate. Integers give float64, complex their real dtype. One pass, blocks combined
/// by the formula of Chan, Golub and LeVeque (1983).
Tensor var(const Tensor& x, Axes axes = {}, double correction = 0.0, bool keepdims = false,
           const Tensor* out = nullptr);
Tensor stddev(const Tensor& x, Axes axes = {}, double correction = 0.0, bool keepdims = false,
              const Tensor* out = nullptr);

/// Running sum along `axis`; result dtype as for `sum`, shape of x. The CPU adds one element after
/// the other in the result's precision (float32 for 16-bit floats), a GPU in float64 and in another
/// order, the same on every run.
Tensor cumsum(const Tensor& x, int64_t axis, const Tensor* out = nullptr);

}  // namespace cuop
