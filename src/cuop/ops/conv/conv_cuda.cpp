#include "cuop/backend/cuda/cudnn.h"
#include "cuop/core/text.h"
#include "cuop/ops/conv/conv_kernels.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/index/view.h"

namespace cuop::kernels {

namespace {

backend::cuda::ConvShape to_shape(const ConvSizes& s, DType dtype) {
  backend::cuda::ConvShape shape;
  shape.dtype = dtype;
  shape.batch = s.batch;
  shape.in_channels = s.in_channels;
  shape.out_channels = s.out_channels;
  shape.groups = s.groups;
  shape.in = s.in;
  shape.kernel = s.kernel;
  shape.out = s.out;
  shape.stride = s.stride;
  shape.padding = s.padding;
  shape.dilation = s.dilation;
  return shape;
}

/// Nothing to add up but the bias.
void conv_of_nothing(const Conv& conv) {
  fill(conv.y, 0);
  if (!conv.bias.is_defined()) return;
  Shape along = Dims::filled(conv.y.ndim(), 1);
  along[1] = conv.bias.size();
  add(conv.y, reshape(conv.bias, along), &conv.y);
}

}  // namespace

void conv_cuda(const Conv& conv, ConvVariant) {
  if (conv.x.size() == 0) return conv_of_nothing(conv);
  backend::cuda::conv("conv", to_shape(conv.sizes, conv.x.dtype()), conv.x.data(), conv.w.data(),
                      conv.bias.is_defined() ? conv.bias.data() : nullptr, conv.y.data(),
                      current_stream(conv.y.device()));
}

std::string conv_obstacle_cuda(ConvVariant variant, const ConvSizes& sizes, DType dtype) {
  if (variant != ConvVariant::kCudnn) {
    return cat("it is the CPU's, the tensors are on a GPU, which has 'cudnn'");
  }
  return backend::cuda::conv_obstacle(to_shape(sizes, dtype));
}

ConvVariant choose_conv_cuda(const ConvSizes& sizes, DType dtype) {
  const std::string obstacle = conv_obstacle_cuda(ConvVariant::kCudnn, sizes, dtype);
  if (!obstacle.empty()) throw NotImplementedError(cat("conv: no kernel on a GPU: ", obstacle));
  return ConvVariant::kCudnn;
}

}  // namespace cuop::kernels
