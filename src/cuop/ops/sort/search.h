// Places of values among sorted elements; bool, integers and real floats.
#pragma once

#include "cuop/core/tensor.h"

namespace cuop {

/// For each of `values` how many elements of the rising `sorted`, of one dimension, are smaller
/// (`is_right`: or equal), as int64 of the values' shape. dtypes promote, NaN is larger than every
/// number. With a `sorter` those elements are sorted[sorter[0]], sorted[sorter[1]], ...
/// ShapeError, DTypeError for complex, DeviceError, IndexError for a sorter's position outside.
Tensor searchsorted(const Tensor& sorted, const Tensor& values, bool is_right = false,
                    const Tensor* sorter = nullptr, const Tensor* out = nullptr);

}  // namespace cuop
