// Direct convolutions on a GPU, for the dtypes that cuDNN lacks and where it is not installed.
#include <algorithm>
#include <limits>

#include "cuop/backend/execution.h"
#include "cuop/core/divide_up.h"
#include "cuop/core/text.h"
#include "cuop/jit/build_options.h"
#include "cuop/ops/conv/conv_cuda_internal.h"

namespace cuop::kernels {

namespace {

constexpr int kThreads = 256;  // kConvThreads of conv_direct.cuh
/// A thread's channels, as many as leave registers for a second block.
int many_channels(DType dtype) { return itemsize(dtype) == 16 ? 4 : 8; }

/// Whether an index of the padded input, of the output or of the weights needs 64 bits.
bool needs_wide_index(const ConvSizes& s) {
  double padded = static_cast<double>(s.batch) * static_cast<double>(s.in_channels + 1);
  double out = static_cast<double>(s.batch) * static_cast<double>(s.out_channels);
  double weights = static_cast<double>(s.out_channels) * static_cast<double>(s.group_in());
  for (size_t i = 0; i < 3; ++i) {
    padded *= static_cast<double>(s.in[i]) + 2 * static_cast<double>(s.padding[i]) +
              static_cast<double>(s.kernel[i]) * static_cast<double>(s.dilation[i]) +
              static_cast<double>(s.stride[i]);
    out *= static_cast<double>(s.out[i]);
    weights *= static_cast<double>(s.kernel[i]);
  }
  return std::max({padded, out, weights}) > std::numeric_limits<int32_t>::max();
}

}  // namespace

DirectConvPlan plan_direct_conv(const Conv& conv) {
  const ConvSizes& s = conv.sizes;
  DirectConvPlan plan;
  const int wanted = backend::execution_options().kernel.shape.each;
  plan.own = s.group_out() == 1 ? 1 : wanted != 0 ? wanted : many_channels(conv.y.dtype());
  plan.is_wide = needs_wide_index(s);
  jit::DirectConv& a = plan.arguments;
  a.x = conv.x.data();
  a.w = conv.w.data();
  a.bias = conv.bias.is_defined() ? conv.bias.data() : nullptr;
  a.y = conv.y.data();
  a.groups = s.groups;
  a.group_in = s.group_in();
  a.group_out = s.group_out();
  std::copy_n(s.in.begin(), 3, a.in);
  std::copy_n(s.kernel.begin(), 3, a.kernel);
  std::copy_n(s.out.begin(), 3, a.out);
  std::copy_n(s.stride.begin(), 3, a.stride);
  std::copy_n(s.padding.begin(), 3, a.padding);
  std::copy_n(s.dilation.begin(), 3, a.dilation);
  a.taps = a.group_in * ConvSizes::volume(s.kernel);
  a.positions = s.batch * ConvSizes::volume(s.out);
  a.channel_tiles = divide_up(a.group_out, plan.own);
  a.position_tiles = divide_up(a.positions, int64_t{jit::block_threads(kThreads)});
  a.tiles = a.groups * a.channel_tiles * a.position_tiles;
  a.has_relu = conv.activation == ConvActivation::kRelu;
  return plan;
}

jit::TextKernel direct_conv_kernel(DType dtype, int own, bool is_wide) {
  return {"conv_direct", "cuop/ops/conv/conv_direct.cuh", "DirectConv",
          cat("convolve_direct<", jit::text_type(dtype), ", ", own,
              is_wide ? ", int64_t>" : ", int32_t>"),
          jit::block_threads(kThreads)};
}

void conv_direct_cuda(const Conv& conv) {
  const DirectConvPlan plan = plan_direct_conv(conv);
  jit::launch_text(direct_conv_kernel(conv.y.dtype(), plan.own, plan.is_wide), conv.y.device(),
                   plan.arguments.tiles, &plan.arguments);
}

}  // namespace cuop::kernels
