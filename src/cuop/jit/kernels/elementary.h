// The elementary functions under their usual names, to 1 ulp of float and 1.5 of double: those of
// accurate/, and on GPUs CUDA's own where tests/gpu/accuracy_test.cpp finds them within that.
//
// A kernel reads those of its functors alone: text takes longer to read than most kernels to
// compile.
#pragma once

#include "cuop/jit/kernels/math/circular.h"
#include "cuop/jit/kernels/math/error_function.h"
#include "cuop/jit/kernels/math/exponential.h"
#include "cuop/jit/kernels/math/hyperbolic.h"
#include "cuop/jit/kernels/math/inverse_circular.h"
#include "cuop/jit/kernels/math/inverse_hyperbolic.h"
#include "cuop/jit/kernels/math/logarithm.h"
#include "cuop/jit/kernels/math/logistic.h"
#include "cuop/jit/kernels/math/root.h"
