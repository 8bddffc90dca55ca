// Internal: the elements of a tensor that are not zero, and a bit for each that says where they
// are.
#pragma once

#include "cuop/core/tensor.h"

namespace cuop {

struct Bitmap {
  Tensor bits;    ///< uint8: bit i % 8 of byte i / 8 is 1 where element i is not zero
  Tensor values;  ///< of those, in their order
};

/// Of a tensor of one dimension, `nonzeros` of whose elements are not zero; -0 is zero, NaN is not.
Bitmap bitmap_of(const Tensor& line, int64_t nonzeros);
/// The tensor again, written to all of a contiguous line. ExecutionError when there are not as many
/// values as bits that are set, as bytes from elsewhere may have it.
void expand_bitmap(const Bitmap& from, const Tensor& line);

}  // namespace cuop
