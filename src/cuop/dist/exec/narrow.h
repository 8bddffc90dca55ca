// Floating tensors rounded to 16 bits for a journey. A line of elements is scaled by the power of
// two that brings its largest finite element to [2^14, 2^15): nothing overflows, what is 2^-29 of
// it or more keeps all bits of the shorter format, infinities and NaN stay what they are.
#pragma once

#include "cuop/core/tensor.h"

namespace cuop::dist {

struct Narrowed {
  Tensor values;     ///< as the tensor, of the shorter dtype
  Tensor exponents;  ///< float32, one for each line: values = 2^exponent * tensor
};

/// Lines lie along `axis`; of tensors without dimensions the element is one.
Narrowed narrowed(const Tensor& x, DType dtype, int axis);
/// Tensors to be filled with what `narrowed` made of a tensor of this shape.
Narrowed empty_narrowed(const Shape& shape, DType dtype, int axis, Device device);
/// The tensor again, written to `out`.
void widen_into(const Tensor& out, const Narrowed& from);

}  // namespace cuop::dist
