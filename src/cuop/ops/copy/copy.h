// Moving elements: between layouts, dtypes and devices.
#pragma once

#include "cuop/core/tensor.h"

namespace cuop {

/// dst <- src, broadcasting src to dst's shape and converting to dst's dtype as NumPy's astype
/// does. Overlapping views are copied as if through a temporary. Same device only.
void copy_into(const Tensor& dst, const Tensor& src);
/// Row-major copy.
Tensor clone(const Tensor& tensor);
/// The elements of x in a new row-major tensor, or in `out` of x's shape, dtype and device, which
/// may be any view of the same memory.
Tensor copy(const Tensor& x, const Tensor* out = nullptr);
/// The tensor itself when it is row-major without gaps, else a copy that is.
Tensor contiguous(const Tensor& tensor);
/// The tensor itself when it already has that dtype, else a converted row-major copy.
Tensor cast(const Tensor& tensor, DType dtype);
/// The tensor itself when it is already there, else a row-major copy on `device`.
Tensor to_device(const Tensor& tensor, Device device);

}  // namespace cuop
