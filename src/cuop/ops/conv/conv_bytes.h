// What convolutions take of a GPU's memory beside their tensors. Pure.
#pragma once

#include <cstdint>

#include "cuop/core/dtype.h"
#include "cuop/ops/conv/conv_options.h"
#include "cuop/ops/work_figures.h"

namespace cuop {

/// Bytes at most, of x and w of these shapes: parts of float32 elements, or cuDNN's workspace.
/// Nothing on the host. ShapeError as of the convolution.
int64_t conv_bytes(const Shape& x, const Shape& w, DType dtype, const ConvOptions& options,
                   const WorkFigures& figures);

}  // namespace cuop
