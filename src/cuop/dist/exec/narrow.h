// Floating tensors rounded to 16 bits for a journey. A line of elements is scaled by the power of
// two that brings its largest finite element to [2^14, 2^15): nothing overflows, what is 2^-29 of
// it or more keeps all bits of the shorter format, infinities and NaN stay what they are. Products
// of matrices are rounded so too, for devices that multiply the shorter format faster.
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

/// c = a b, or c += a b, of float32 matrices. Rows of a and columns of b are rounded as
/// above; the sums are float32 and are scaled back, so that 1e38, 1e-40 and infinities
/// come out as of a product in float32, and |c - a b| <= k eps sqrt(K) |a| |b| in the Frobenius
/// norm with the eps of `dtype`.
void multiply_narrowed(const Tensor& a, const Tensor& b, DType dtype, bool adds, const Tensor& c);

}  // namespace cuop::dist
