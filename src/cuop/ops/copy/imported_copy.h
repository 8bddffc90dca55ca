// Internal: copies from memory of another process's GPU.
#pragma once

#include "cuop/core/tensor.h"

namespace cuop {

/// dst <- src, of one dtype and shape, from another process's memory that dst's GPU reads, as work
/// of dst's current stream.
void copy_imported(const Tensor& dst, const Tensor& src);

}  // namespace cuop
