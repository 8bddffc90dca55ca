// The pools of a GPU: its own memory, and page-locked host memory for copies.
#pragma once

#include "cuop/memory/resource.h"

namespace cuop::backend::cuda {

/// The device's memory: the pool, or what CUOP_CUDA_ALLOCATOR names. Made by the first call and
/// never destroyed.
memory::MemoryResource& cuda_memory(Device device);
/// Where this thread's tensors lie unless somebody chose otherwise: there, or while another library
/// records a graph of the current stream, in that graph's part of it.
memory::MemoryResource& current_cuda_memory(Device device);
/// Page-locked host memory for copies from and to the device, ordered on its streams.
memory::MemoryResource& pinned_memory(Device device);

/// The device's resource; made by the first call.
memory::MemoryResource& direct_memory(Device device);

}  // namespace cuop::backend::cuda
