// The C interface between the library and the module that links oneDNN (dnn_module.cpp). The module
// is built where oneDNN's headers are and opened at run time; neither side links the other.
#pragma once

#include <cstdint>

#include "cuop/backend/conv_geometry.h"

extern "C" {

/// A convolution, of whose spatial axes the last `spatial` count. All members are of one size, so
/// that there are no gaps and two problems compare as bytes.
struct CuopDnnConv : cuop::backend::ConvGeometry {
  int64_t spatial, has_bias, threads;
};

/// "3.1.1, OpenMP".
typedef const char* CuopDnnVersion();
/// Row-major float32 arrays. 0, or 1 with a reason of at most `size` bytes in `error`. `kept`, when
/// not null, holds oneDNN's forms of w, which must be the same in every call that passes it.
typedef int CuopDnnRunConv(const CuopDnnConv* problem, const float* x, const float* w,
                           const float* bias, float* y, void* kept, char* error, int64_t size);
typedef void* CuopDnnNewWeights();
typedef void CuopDnnFreeWeights(void* kept);
/// Drops prepared primitives and their memory that is not in use; returns its bytes.
typedef int64_t CuopDnnRelease();
}
