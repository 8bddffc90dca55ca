// The inverse hyperbolic functions under their usual names (kernels/elementary.h).
#pragma once

#include "cuop/jit/kernels/accurate/logarithm.h"

namespace cuop::jit::math {

using accurate::acosh;
using accurate::asinh;
using accurate::atanh;

}  // namespace cuop::jit::math
