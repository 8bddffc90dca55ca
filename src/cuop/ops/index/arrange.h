// Joining, repeating, shifting and padding tensors; any dtype, results are new tensors.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "cuop/core/scalar.h"
#include "cuop/core/tensor.h"

namespace cuop {

/// Joins along an axis that exists; shapes agree elsewhere, dtypes promote.
Tensor concatenate(std::span<const Tensor> tensors, int64_t axis = 0, const Tensor* out = nullptr);
/// Joins along a new axis; all shapes agree.
Tensor stack(std::span<const Tensor> tensors, int64_t axis = 0, const Tensor* out = nullptr);

/// What lies outside: a value, the edge's, the mirror image without the edge repeated, the mirror
/// image with it, or the opposite side.
enum class PadMode : uint8_t { kConstant, kEdge, kReflect, kSymmetric, kWrap };
PadMode parse_pad_mode(std::string_view text);
/// Adds widths[i] = {before, after} elements to axis i (one entry serves all axes). ShapeError for
/// a negative width, and when reflect, edge or wrap pad an empty axis.
Tensor pad(const Tensor& x, std::span<const std::pair<int64_t, int64_t>> widths,
           PadMode mode = PadMode::kConstant, const Scalar& value = 0, const Tensor* out = nullptr);

/// A view with the order reversed along the axes (none: all).
Tensor flip(const Tensor& x, const std::optional<Dims>& axes = {});
/// Shifts the elements of the flattened tensor by the sum of `shifts`; those beyond the end come in
/// at the front.
Tensor roll(const Tensor& x, std::span<const int64_t> shifts);
/// The same along axes, one after the other; nothing moves when none is given, or no shift.
Tensor roll(const Tensor& x, std::span<const int64_t> shifts, std::span<const int64_t> axes);
/// The whole tensor `repeats[i]` times along axis i, axes counted from the back as NumPy does.
Tensor tile(const Tensor& x, std::span<const int64_t> repeats);
/// Each element `count` times along `axis` (none: of the flattened tensor).
Tensor repeat(const Tensor& x, int64_t count, std::optional<int64_t> axis = {});
/// The i-th element along the axis counts[i] times; one count serves all of them.
Tensor repeat(const Tensor& x, std::span<const int64_t> counts, std::optional<int64_t> axis);

}  // namespace cuop
