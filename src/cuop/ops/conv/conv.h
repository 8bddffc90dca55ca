// Convolutions (cross-correlations, as neural networks use the word) of batches of channels-first
// images.
#pragma once

#include "cuop/core/tensor.h"
#include "cuop/ops/conv/conv_options.h"

namespace cuop {

/// x [N, C, spatial...], w [O, C / groups, kernel...], bias [O] or null -> [N, O, out...] with
/// out = (in + 2 padding - dilation (kernel - 1) - 1) / stride + 1, rounded down. Every dtype but
/// bool, one for x, w and bias: float16 and bfloat16 accumulate in float32, integers wrap, nothing
/// is conjugated. Errors: ShapeError naming the argument (an output size below 1 too), DTypeError
/// (kRelu of complex numbers too), ExecutionError for a variant that cannot run the case, saying
/// why; NotImplementedError for kCudnn where no engine of the library keeps this precision.
Tensor conv1d(const Tensor& x, const Tensor& w, const Tensor* bias = nullptr,
              const ConvOptions& options = {}, const Tensor* out = nullptr);
Tensor conv2d(const Tensor& x, const Tensor& w, const Tensor* bias = nullptr,
              const ConvOptions& options = {}, const Tensor* out = nullptr);
Tensor conv3d(const Tensor& x, const Tensor& w, const Tensor* bias = nullptr,
              const ConvOptions& options = {}, const Tensor* out = nullptr);

/// The shape of the result of the convolution above, after all its checks.
Shape conv_output_shape(const char* who, const Shape& x, const Shape& w,
                        const ConvOptions& options);
/// The variant that kAuto stands for in this case (or the one asked for, when it can run).
ConvVariant conv_variant(const Tensor& x, const Tensor& w, const ConvOptions& options);

}  // namespace cuop
