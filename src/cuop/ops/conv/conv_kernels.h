// Internal: a convolution after all checks, brought to three spatial axes, and its kernels.
#pragma once

#include <array>
#include <string>

#include "cuop/core/tensor.h"
#include "cuop/ops/conv/conv_options.h"

namespace cuop::kernels {

/// Sizes of x [batch, in_channels, in...], w [out_channels, in_channels / groups, kernel...] and
/// y [batch, out_channels, out...]; missing leading spatial axes have size 1.
struct ConvSizes {
  using Axes = std::array<int64_t, 3>;
  int64_t batch = 0, in_channels = 0, out_channels = 0, groups = 1;
  int spatial = 2;  ///< axes that the user has
  Axes in{1, 1, 1}, kernel{1, 1, 1}, out{1, 1, 1};
  Axes stride{1, 1, 1}, padding{0, 0, 0}, dilation{1, 1, 1};

  int64_t group_in() const { return in_channels / groups; }
  int64_t group_out() const { return out_channels / groups; }
  static int64_t volume(const Axes& axes) { return axes[0] * axes[1] * axes[2]; }
};

/// All tensors are row-major of one dtype, on the CPU no 16-bit float; `bias` may be undefined. y
/// is not empty and overlaps nothing; an inner axis may be.
struct Conv {
  ConvSizes sizes;
  Tensor x, w, bias, y;
  ConvWeightCache* cache = nullptr;
  ConvActivation activation = ConvActivation::kNone;  ///< kRelu not for complex dtypes
};

/// kAuto is chosen here, any other variant must be able to run.
void conv_cpu(const Conv& conv, ConvVariant variant);
/// The sums without the activation, which conv_cpu applies to them.
void conv_gemm_cpu(const Conv& conv);
void conv_direct_cpu(const Conv& conv);
void conv_onednn_cpu(const Conv& conv);

/// A GPU's: cuDNN or our own kernel, which kAuto takes where cuDNN has nothing. NotImplementedError
/// for kCudnn when the library has no engine.
void conv_cuda(const Conv& conv, ConvVariant variant);
std::string conv_obstacle_cuda(ConvVariant variant, const ConvSizes& sizes, DType dtype);
ConvVariant choose_conv_cuda(const ConvSizes& sizes, DType dtype, Device device);

/// Why the CPU cannot run this variant, or "".
std::string conv_obstacle_cpu(ConvVariant variant, const ConvSizes& sizes, DType dtype);
/// What kAuto stands for.
ConvVariant choose_conv_cpu(const ConvSizes& sizes, DType dtype, Device device);

}  // namespace cuop::kernels
