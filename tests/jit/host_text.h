// What kernel text names beside CUDA's built-in functions, on the host: the 16-bit floats are the
// library's own. Includes of kernel text follow this one.
#pragma once

#include "cuop/jit/kernels/narrow.h"
#include "tests/jit/host_device.h"
