// Moving elements: between layouts, dtypes and devices. Conversion of whole tensors is never an
// error of a value, as NumPy's astype: integers keep their low bits; floats lose their fraction and
// then keep the low bits of the 64-bit integer, where NaN, infinities and what 64 bits do not hold
// count as -2^63 (0 in dtypes of 8 to 32 bits); floats round to nearest even, or to infinity.
// Complex to real is a DTypeError, since it would drop the imaginary part.
#pragma once

#include "cuop/core/tensor.h"

namespace cuop {

/// dst <- src, broadcasting src to dst's shape and converting to dst's dtype. Overlapping views are
/// copied as if through a temporary. Same device only.
void copy_into(const Tensor& dst, const Tensor& src);
/// The same from any device. Nothing is made in between, so that elements go straight to dst, where
/// dst's GPU reads src's memory, and where both are row-major and of one dtype and shape, which for
/// page-locked memory is the link's full speed.
void copy_across(const Tensor& dst, const Tensor& src);
/// The same, for callers that have ordered the streams of both devices: between GPUs it is work of
/// dst's current stream, which nothing waits for.
void pull(const Tensor& dst, const Tensor& src);
/// Row-major copy.
Tensor clone(const Tensor& tensor);
/// The elements of x in a new row-major tensor, or in `out` of x's shape, dtype and device, which
/// may be any view of the same memory.
Tensor copy(const Tensor& x, const Tensor* out = nullptr);
/// The tensor itself when it is row-major without gaps, else a copy that is.
Tensor contiguous(const Tensor& tensor);
/// DTypeError, naming `who`, where elements of `from` are not converted to `to`.
void check_convertible(const char* who, DType from, DType to);
/// The tensor itself when it already has that dtype, else a converted copy that lies as it does.
Tensor cast(const Tensor& tensor, DType dtype);
/// The same for values that have to be kept: OverflowError, naming `who` and the first of them,
/// when an integer dtype cannot hold one (fractions are cut off before).
Tensor cast_exactly(const char* who, const Tensor& tensor, DType dtype);
/// The tensor itself when it is already there, else a row-major copy on `device`.
Tensor to_device(const Tensor& tensor, Device device);

}  // namespace cuop
