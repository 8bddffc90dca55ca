#include "cuop/ops/conv/conv.h"

#include <algorithm>

#include "cuop/backend/cuda/cudnn.h"
#include "cuop/backend/slot.h"
#include "cuop/core/enum_names.h"
#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/ops/conv/conv_bytes.h"
#include "cuop/ops/conv/conv_kernels.h"
#include "cuop/ops/conv/split_conv_internal.h"
#include "cuop/ops/dense_output.h"
#include "cuop/ops/output.h"
#include "cuop/ops/spatial.h"

namespace cuop {

namespace {

using kernels::ConvSizes;

constexpr backend::Slot kConv{"conv", &kernels::conv_cpu, &kernels::conv_cuda};
constexpr backend::Slot kChoose{"conv", &kernels::choose_conv_cpu, &kernels::choose_conv_cuda};
constexpr backend::Slot kObstacle{"conv", &kernels::conv_obstacle_cpu,
                                  &kernels::conv_obstacle_cuda};

constexpr const char* kVariantNames[] = {"auto", "onednn", "gemm", "direct", "cudnn", "split"};
constexpr const char* kActivationNames[] = {"none", "relu"};

ConvSizes check_sizes(const char* who, const Shape& x, const Shape& w, const ConvOptions& options,
                      int spatial) {
  const char* const axes[] = {"length", "height, width", "depth, height, width"};
  if (x.ndim() != spatial + 2) {
    throw ShapeError(cat(who, ": x has shape ", x, "; it needs ", spatial + 2,
                         " dimensions (batch, channels, ", axes[spatial - 1], ")"));
  }
  if (w.ndim() != spatial + 2) {
    throw ShapeError(cat(who, ": w has shape ", w, "; it needs ", spatial + 2,
                         " dimensions (out channels, in channels / groups, kernel)"));
  }
  ConvSizes s;
  s.batch = x[0];
  s.in_channels = x[1];
  s.out_channels = w[0];
  s.groups = options.groups;
  s.spatial = spatial;
  if (s.groups < 1) {
    throw ShapeError(cat(who, ": groups is ", s.groups, "; it must be at least 1"));
  }
  if (s.in_channels % s.groups != 0 || s.out_channels % s.groups != 0) {
    throw ShapeError(cat(who, ": groups is ", s.groups, "; it must divide the ", s.in_channels,
                         " channels of x and the ", s.out_channels, " of w"));
  }
  if (w[1] != s.group_in()) {
    throw ShapeError(cat(who, ": w of shape ", w, " has ", w[1], " input channels; x of shape ", x,
                         " in ", s.groups, s.groups == 1 ? " group" : " groups", " needs ",
                         s.group_in()));
  }
  for (int i = 0; i < spatial; ++i) {
    const auto axis = static_cast<size_t>(3 - spatial + i);
    s.in[axis] = x[i + 2];
    s.kernel[axis] = w[i + 2];
    const auto option = [&](const char* name, const Dims& given, int64_t fallback) {
      return given.empty() ? fallback : spatial_option(who, name, given, i, spatial, fallback);
    };
    const int64_t stride = option("stride", options.stride, 1);
    s.padding[axis] = option("padding", options.padding, 0);
    s.dilation[axis] = option("dilation", options.dilation, 1);
    if (s.kernel[axis] < 1) {
      throw ShapeError(cat(who, ": w has shape ", w, "; a kernel axis must be at least 1"));
    }
    const int64_t extent =
        checked_add(checked_multiply(s.dilation[axis], s.kernel[axis] - 1, who), 1, who);
    const int64_t padded = checked_add(s.in[axis], checked_multiply(2, s.padding[axis], who), who);
    const int64_t room = padded - extent;
    if (room < 0) {
      throw ShapeError(cat(who, ": spatial axis ", i, " of x has ", s.in[axis], " elements; with ",
                           "padding ", s.padding[axis], " the kernel of ", s.kernel[axis],
                           " with dilation ", s.dilation[axis], " needs at least ",
                           extent - 2 * s.padding[axis]));
    }
    // A longer stride would leave the image just the same; so sums of strides do not overflow.
    s.stride[axis] = std::min(stride, room + 1);
    s.out[axis] = room / s.stride[axis] + 1;
  }
  return s;
}

Shape output_shape(const ConvSizes& s) {
  Shape shape{s.batch, s.out_channels};
  for (size_t i = static_cast<size_t>(3 - s.spatial); i < 3; ++i) shape.push_back(s.out[i]);
  return shape;
}

/// ExecutionError with the reason when a variant that was asked for by name cannot run.
void check_variant(const char* who, Device device, const ConvSizes& sizes, DType dtype,
                   ConvVariant asked) {
  if (asked == ConvVariant::kAuto) return;
  const std::string obstacle = kObstacle(device, asked, sizes, dtype, device);
  if (!obstacle.empty()) {
    throw ExecutionError(cat(who, ": the variant '", name(asked), "' cannot run: ", obstacle));
  }
}

void check_activation(const char* who, DType dtype, ConvActivation activation) {
  if (activation == ConvActivation::kNone || !is_complex(dtype)) return;
  throw DTypeError(cat(who, ": the activation '", name(activation),
                       "' is for real numbers, x has dtype ", dtype));
}

void check_operand(const char* who, const char* name, const Tensor& t, DType dtype) {
  if (t.dtype() == dtype) return;
  throw DTypeError(
      cat(who, ": ", name, " has dtype ", t.dtype(), ", x has ", dtype, "; they must be equal"));
}

Tensor convolution(const char* who, int spatial, const Tensor& x, const Tensor& w,
                   const Tensor* bias, const ConvOptions& options, const Tensor* out) {
  trace::Span span(who, "op");
  const Device device = common_device(who, {&x, &w, bias, out});
  visit_dtype(NumericTypes{}, x.dtype(), who, [](auto) {});
  check_operand(who, "w", w, x.dtype());
  check_activation(who, x.dtype(), options.activation);
  kernels::Conv conv;
  conv.sizes = check_sizes(who, x.shape(), w.shape(), options, spatial);
  conv.cache = options.cache;
  conv.activation = options.activation;
  const bool has_bias = bias != nullptr && bias->is_defined();
  if (has_bias) {
    check_operand(who, "bias", *bias, x.dtype());
    if (!(bias->shape() == Shape{w.shape(0)})) {
      throw ShapeError(cat(who, ": bias has shape ", bias->shape(), "; w of shape ", w.shape(),
                           " needs (", w.shape(0), ",)"));
    }
  }
  check_variant(who, device, conv.sizes, x.dtype(), options.variant);
  const Tensor result = prepare_output(who, out, output_shape(conv.sizes), x.dtype(), device);
  check_no_overlap(who, result, x, "x");
  check_no_overlap(who, result, w, "w");
  if (has_bias) check_no_overlap(who, result, *bias, "bias");
  if (result.size() == 0) return result;
  span.add_flops(2.0 * static_cast<double>(result.size()) *
                 static_cast<double>(w.size() / w.shape(0)));
  span.add_bytes(x.nbytes() + w.nbytes() + result.nbytes());

  // On the CPU the 16-bit floats are computed in float32 as a whole and rounded once.
  const DType dtype = device.is_cpu() ? compute_dtype(x.dtype()) : x.dtype();
  conv.x = contiguous(cast(x, dtype));
  conv.w = contiguous(cast(w, dtype));
  if (has_bias) conv.bias = contiguous(cast(*bias, dtype));
  fill_dense(result, dtype, [&](const Tensor& dense) {
    conv.y = dense;
    kConv(device, conv, options.variant);
  });
  return result;
}

}  // namespace

const char* name(ConvVariant variant) { return kVariantNames[static_cast<int>(variant)]; }

ConvVariant parse_conv_variant(std::string_view text, const char* who) {
  return parse_name<ConvVariant>(cat(who, ": variant"), kVariantNames, text);
}

const char* name(ConvActivation activation) {
  return kActivationNames[static_cast<int>(activation)];
}

ConvActivation parse_conv_activation(std::string_view text, const char* who) {
  return parse_name<ConvActivation>(cat(who, ": activation"), kActivationNames, text);
}

Tensor conv1d(const Tensor& x, const Tensor& w, const Tensor* bias, const ConvOptions& options,
              const Tensor* out) {
  return convolution("conv1d", 1, x, w, bias, options, out);
}

Tensor conv2d(const Tensor& x, const Tensor& w, const Tensor* bias, const ConvOptions& options,
              const Tensor* out) {
  return convolution("conv2d", 2, x, w, bias, options, out);
}

Tensor conv3d(const Tensor& x, const Tensor& w, const Tensor* bias, const ConvOptions& options,
              const Tensor* out) {
  return convolution("conv3d", 3, x, w, bias, options, out);
}

Shape conv_output_shape(const char* who, const Shape& x, const Shape& w,
                        const ConvOptions& options) {
  if (x.ndim() < 3 || x.ndim() > 5) {
    throw ShapeError(cat(who, ": x has shape ", x, "; it needs 3, 4 or 5 dimensions"));
  }
  return output_shape(check_sizes(who, x, w, options, x.ndim() - 2));
}

ConvVariant conv_variant(const Tensor& x, const Tensor& w, const ConvOptions& options) {
  if (x.ndim() < 3 || x.ndim() > 5) {
    throw ShapeError(cat("conv: x has shape ", x.shape(), "; it needs 3, 4 or 5 dimensions"));
  }
  const ConvSizes sizes = check_sizes("conv", x.shape(), w.shape(), options, x.ndim() - 2);
  check_variant("conv", x.device(), sizes, x.dtype(), options.variant);
  const bool is_auto = options.variant == ConvVariant::kAuto;
  return is_auto ? kChoose(x.device(), sizes, x.dtype(), x.device()) : options.variant;
}

int64_t conv_bytes(const Shape& x, const Shape& w, DType dtype, const ConvOptions& options,
                   const WorkFigures& figures) {
  if (!figures.is_gpu() || !is_floating(dtype)) return 0;
  const ConvSizes sizes = check_sizes("conv", x, w, options, x.ndim() - 2);
  const int64_t most = backend::cuda::kConvWorkspace;
  const int64_t workspace = std::min(most, figures.spare.workspace.value_or(most));
  const bool may_split =
      figures.splits_products && figures.spare.has_copies && kernels::is_split_conv(sizes, dtype);
  return may_split ? std::max(workspace, kernels::split_conv_bytes(sizes, figures.multiprocessors))
                   : workspace;
}

}  // namespace cuop
