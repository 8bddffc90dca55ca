// Where tensors of the CPU lie unless somebody chose otherwise.
#pragma once

#include "cuop/memory/resource.h"

namespace cuop::memory {

/// The pool over mapped host memory, or the C library's allocator when CUOP_HOST_ALLOCATOR asks for
/// it. Made by the first call and never destroyed: tensors may outlive static destructors.
MemoryResource& default_host_resource();

}  // namespace cuop::memory
