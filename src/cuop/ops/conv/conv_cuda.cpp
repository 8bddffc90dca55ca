// Convolutions on a GPU: by cuDNN, or by kernels of our own, directly or by parts of the elements.
#include <algorithm>
#include <limits>

#include "cuop/backend/cuda/cuda_runtime.h"
#include "cuop/backend/cuda/cudnn.h"
#include "cuop/backend/execution.h"
#include "cuop/core/divide_up.h"
#include "cuop/core/error.h"
#include "cuop/core/log.h"
#include "cuop/core/text.h"
#include "cuop/jit/build_options.h"
#include "cuop/jit/cuda/text_kernel.h"
#include "cuop/ops/conv/conv_choice_cuda.h"
#include "cuop/ops/conv/conv_kernels.h"
#include "cuop/ops/conv/split_conv_internal.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/matmul/split_product_internal.h"
#include "cuop/ops/trial.h"

namespace cuop::kernels {

namespace {

using backend::cuda::ConvData;
using backend::cuda::ConvShape;

const char* who_of(const ConvSizes& s) {
  constexpr const char* kNames[] = {"conv1d", "conv2d", "conv3d"};
  return kNames[s.spatial - 1];
}

ConvShape to_shape(const ConvSizes& s, DType dtype) { return {s, dtype}; }

/// cuDNN's problem with all that follows the sums.
ConvShape whole_shape(const Conv& conv) {
  ConvShape shape = to_shape(conv.sizes, conv.y.dtype());
  shape.has_bias = conv.bias.is_defined();
  shape.has_relu = conv.activation == ConvActivation::kRelu;
  return shape;
}

bool is_aligned(const Tensor& t) {
  return reinterpret_cast<uintptr_t>(t.data()) % backend::cuda::kConvAlignment == 0;
}

const void* address(const Tensor& t) { return t.is_defined() ? t.data() : nullptr; }

ConvData data_of(const Conv& conv) {
  return {address(conv.x), address(conv.w), address(conv.bias), conv.y.data()};
}

bool run(const ConvShape& shape, const Conv& conv) {
  return tuned_conv(who_of(conv.sizes), shape, data_of(conv), current_stream(conv.y.device()));
}

/// y <- bias in every channel: the convolution of ones with the bias as weights of one element.
bool spread_bias(const Conv& conv) {
  Conv spread;
  spread.sizes = conv.sizes;
  ConvSizes& s = spread.sizes;
  s.in_channels = s.groups = 1;
  s.in = s.out;
  s.kernel = s.stride = s.dilation = {1, 1, 1};
  s.padding = {0, 0, 0};
  spread.x = full({s.batch, ConvSizes::volume(s.out)}, 1, conv.y.dtype(), conv.y.device());
  spread.w = conv.bias;
  spread.y = conv.y;
  return run(to_shape(s, conv.y.dtype()), spread);
}

/// The bias joins the convolution's kernel where cuDNN has one for both; otherwise y starts with
/// it, so that the sum is rounded once either way. False when cuDNN has no engine for a part.
bool add_up(const Conv& conv) {
  ConvShape shape = to_shape(conv.sizes, conv.y.dtype());
  shape.has_bias = conv.bias.is_defined();
  if (conv.x.size() == 0) {
    if (shape.has_bias) return spread_bias(conv);
    fill(conv.y, 0);
    return true;
  }
  if (run(shape, conv)) return true;
  if (!shape.has_bias) return false;
  shape.has_bias = false;
  shape.adds_to_y = true;
  const bool is_offered =
      has_tuned_conv(who_of(conv.sizes), shape, current_stream(conv.y.device()));
  return is_offered && spread_bias(conv) && run(shape, conv);
}

/// The rectifier joins the kernel too where cuDNN has one for all; rounded sums are as negative as
/// the sums, so that it may follow as well.
bool convolve(const Conv& conv) {
  if (conv.activation == ConvActivation::kNone) return add_up(conv);
  if (conv.x.size() > 0 && run(whole_shape(conv), conv)) return true;
  if (!add_up(conv)) return false;
  relu(conv.y, &conv.y);
  return true;
}

bool is_cudnns(const ConvSizes& sizes, DType dtype) {
  return backend::cuda::conv_obstacle(to_shape(sizes, dtype)).empty() &&
         backend::cuda::cudnn_absence().empty();
}

NotImplementedError no_engine(const Conv& conv) {
  return NotImplementedError(cat(who_of(conv.sizes), ": cuDNN has no engine for this problem in ",
                                 conv.y.dtype(), " on ", conv.y.device(),
                                 " that keeps its precision; 'auto' and 'direct' need none"));
}

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

SplitConvPlan split_plan(const ConvSizes& sizes, Device device) {
  return plan_split_conv(sizes, backend::cuda::cuda_runtime(device).properties().multiprocessors);
}

/// Whether it was computed by parts of the elements, which may be searched for first.
bool try_by_parts(const Conv& conv) {
  const Device device = conv.y.device();
  if (!may_split_conv(conv.sizes, conv.y.dtype(), device)) return false;
  const SplitConvPlan plan = split_plan(conv.sizes, device);
  const ConvByParts by_parts = [&](const ConvData& data) {
    const auto at = [](const Tensor& like, const void* place) {
      return reshape(borrowed(place, like.size(), like.dtype(), like.device()), like.shape());
    };
    Conv other = conv;
    other.x = at(conv.x, data.x);
    other.w = at(conv.w, data.w);
    if (conv.bias.is_defined()) other.bias = at(conv.bias, data.bias);
    other.y = at(conv.y, data.y);
    split_conv_cuda(other, plan);
  };
  if (!is_faster_by_parts(who_of(conv.sizes), whole_shape(conv), data_of(conv),
                          current_stream(device), by_parts,
                          is_split_conv_faster(conv.sizes, plan))) {
    return false;
  }
  try {
    split_conv_cuda(conv, plan);
    return true;
  } catch (const MemoryError& error) {
    log(LogLevel::kInfo, who_of(conv.sizes),
        ": no room for parts, cuDNN convolves: ", error.what());
    return false;
  }
}

}  // namespace

void conv_cuda(const Conv& conv, ConvVariant variant) {
  const bool is_auto = variant == ConvVariant::kAuto;
  if (variant == ConvVariant::kSplit) {
    return split_conv_cuda(conv, split_plan(conv.sizes, conv.y.device()));
  }
  if (is_auto && try_by_parts(conv)) return;
  const bool is_direct = is_auto && !is_cudnns(conv.sizes, conv.y.dtype());
  if (is_direct || variant == ConvVariant::kDirect) return conv_direct_cuda(conv);
  Conv aligned = conv;
  for (Tensor* t : {&aligned.x, &aligned.w, &aligned.bias}) {
    if (t->is_defined() && !is_aligned(*t)) *t = clone(*t);
  }
  if (!is_aligned(conv.y)) aligned.y = empty(conv.y.shape(), conv.y.dtype(), conv.y.device());
  if (!convolve(aligned)) {
    if (!is_auto) throw no_engine(conv);
    return conv_direct_cuda(conv);
  }
  if (!is_aligned(conv.y)) copy_into(conv.y, aligned.y);
}

std::string conv_obstacle_cuda(ConvVariant variant, const ConvSizes& sizes, DType dtype,
                               Device device) {
  if (variant == ConvVariant::kDirect) return "";
  if (variant == ConvVariant::kSplit) {
    if (dtype != DType::kFloat32) return cat("it is for float32, the tensors are ", dtype);
    const std::string obstacle = split_product_obstacle(device);
    return obstacle.empty() ? split_conv_obstacle(sizes) : obstacle;
  }
  if (variant != ConvVariant::kCudnn) {
    return "it is the CPU's, the tensors are on a GPU, which has 'cudnn', 'split' and 'direct'";
  }
  const std::string absence = backend::cuda::cudnn_absence();
  return absence.empty() ? backend::cuda::conv_obstacle(to_shape(sizes, dtype)) : absence;
}

ConvVariant choose_conv_cuda(const ConvSizes& sizes, DType dtype, Device device) {
  if (may_split_conv(sizes, dtype, device)) {
    const bool otherwise = is_split_conv_faster(sizes, split_plan(sizes, device));
    if (is_known_faster_by_parts(who_of(sizes), to_shape(sizes, dtype), current_stream(device),
                                 otherwise)) {
      return ConvVariant::kSplit;
    }
  }
  if (!is_cudnns(sizes, dtype)) return ConvVariant::kDirect;
  const bool is_empty =
      sizes.batch * sizes.in_channels * ConvSizes::volume(sizes.in) * sizes.out_channels == 0;
  const bool is_offered =
      is_empty || has_tuned_conv(who_of(sizes), to_shape(sizes, dtype), current_stream(device));
  return is_offered ? ConvVariant::kCudnn : ConvVariant::kDirect;
}

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
  a.position_tiles = divide_up(a.positions, int64_t{jit::block_threads(jit::kConvThreads)});
  a.tiles = a.groups * a.channel_tiles * a.position_tiles;
  a.has_relu = conv.activation == ConvActivation::kRelu;
  return plan;
}

jit::TextKernel direct_conv_kernel(DType dtype, int own, bool is_wide) {
  return {"conv_direct", "cuop/ops/conv/conv.cuh", "DirectConv",
          jit::instance("convolve_direct", dtype, own, is_wide ? "int64_t" : "int32_t"),
          jit::block_threads(jit::kConvThreads)};
}

void conv_direct_cuda(const Conv& conv) {
  const DirectConvPlan plan = plan_direct_conv(conv);
  jit::launch_text(direct_conv_kernel(conv.y.dtype(), plan.own, plan.is_wide), conv.y.device(),
                   plan.arguments.tiles, &plan.arguments);
}

}  // namespace cuop::kernels
