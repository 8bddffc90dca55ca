// NumPy's indexing x[...]: a list of integers, slices, new axes, an ellipsis, boolean masks and
// integer arrays, read or assigned. Without masks and arrays the result is a view; with them a
// copy.
#pragma once

#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "cuop/core/tensor.h"

namespace cuop {

/// start:stop:step as Python reads it; step may be negative but not 0.
struct SliceIndex {
  std::optional<int64_t> start;
  std::optional<int64_t> stop;
  int64_t step = 1;
};
struct NewAxisIndex {};
struct EllipsisIndex {};
/// A Tensor index is a bool mask (of any rank, 0 included) or an integer array.
using Index = std::variant<int64_t, SliceIndex, NewAxisIndex, EllipsisIndex, Tensor>;

/// The list with exactly one ellipsis, checked against a tensor of `ndim` dimensions.
std::vector<Index> complete_index(int ndim, std::span<const Index> index);

/// x[index]. IndexError: too many indices, two ellipses, an integer or an array's element out of
/// range, a mask whose shape does not fit, index arrays that do not broadcast; DTypeError for an
/// index array that is neither bool nor integer.
Tensor get_item(const Tensor& x, std::span<const Index> index);
/// x[index] = value, converted to x's dtype; value broadcasts to the indexed shape. Where an
/// element is named several times the last value in row-major order of the index stays.
void set_item(const Tensor& x, std::span<const Index> index, const Tensor& value);

}  // namespace cuop
