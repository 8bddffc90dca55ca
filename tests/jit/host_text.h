// What kernel text names beside CUDA's built-in functions, on the host: the 16-bit floats are the
// library's own. Includes of kernel text follow this one.
#pragma once

#include "cuop/core/half.h"
#include "tests/jit/host_device.h"

namespace cuop::jit {
using cuop::BFloat16;
using cuop::Half;
template <class T>
T narrowed(float value) {
  return T(value);
}
}  // namespace cuop::jit
