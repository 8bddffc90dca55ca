// Tensors of the CPU whose memory a GPU copies from and to by itself.
#pragma once

#include "cuop/core/tensor.h"

namespace cuop {

/// A row-major copy of the tensor, of any device, in page-locked host memory: a tensor of the CPU
/// that copies from and to `gpu` directly, where ordinary memory goes through the driver's staging
/// buffer. A copy is done when the call returns, as every copy between a host and a GPU. The memory
/// is the pool's of that GPU and goes back to it with the last view.
/// DeviceError when `gpu` is none that can be used, MemoryError when no more can be locked.
Tensor pin_memory(const Tensor& tensor, Device gpu);
/// Whether all memory that the elements of a tensor of the CPU lie in is such memory.
bool is_pinned(const Tensor& on_host, Device gpu);
/// Returns the idle page-locked memory of that GPU's pool to the system; returns the bytes.
int64_t release_pinned(Device gpu);

}  // namespace cuop
