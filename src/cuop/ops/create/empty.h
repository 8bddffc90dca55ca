// Tensors without values of their own: over new memory, or over memory that is there.
#pragma once

#include <memory>

#include "cuop/core/tensor.h"

namespace cuop {

/// Uninitialised. ShapeError for a size that overflows, MemoryError for one that does not fit.
Tensor empty(const Shape& shape, DType dtype = DType::kFloat32, Device device = kCpu);
/// The same of that layout, which has no gaps and begins at 0.
Tensor empty_laid_out(const Layout& layout, DType dtype, Device device);
/// A tensor over memory that somebody else owns; `owner` keeps it alive. Strides in elements.
Tensor from_memory(void* data, const Layout& layout, DType dtype, Device device,
                   std::shared_ptr<void> owner, bool is_read_only = false);

/// The memory of a tensor without gaps as elements of another dtype, one after the other.
Tensor seen_as(const Tensor& tensor, DType dtype);

}  // namespace cuop
