#include "cuop/dist/algo/conv.h"

#include <algorithm>

#include "cuop/core/divide_up.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/algo/operations.h"
#include "cuop/dist/exec/call.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"

namespace cuop::dist {
namespace {

/// The given value of a spatial axis: one for all of them, one each, or the default.
int64_t option(const Dims& given, int axis, int64_t otherwise) {
  if (given.empty()) return otherwise;
  return given.ndim() == 1 ? given[0] : given[axis];
}

/// Cells of the input along a spatial axis that cells [low, high) of the output read; they may lie
/// outside the input.
Interval cells_read(Interval output, int axis, int64_t kernel, const ConvOptions& options) {
  const int64_t stride = option(options.stride, axis, 1);
  const int64_t padding = option(options.padding, axis, 0);
  const int64_t reach = option(options.dilation, axis, 1) * (kernel - 1);
  return {output.low * stride - padding, (output.high - 1) * stride - padding + reach + 1};
}

/// The sizes that decide which box of an input a box of the output reads.
struct Geometry {
  Shape x;
  Shape w;
  Shape output;
  ConvOptions options;

  int spatial() const { return x.ndim() - 2; }
  /// All of this spatial axis is made at once: the operator's own padding serves.
  bool is_whole(const Box& box, int axis) const {
    return box.interval(2 + axis) == Interval{0, output[2 + axis]};
  }
  int64_t inputs_per_group() const { return w[1]; }
  int64_t outputs_per_group() const { return w[0] / options.groups; }
  /// The groups to which these output channels belong.
  Interval groups_of(Interval channels) const {
    return {channels.low / outputs_per_group(), divide_up(channels.high, outputs_per_group())};
  }
};

/// What x (0), w (1) and bias (2) contribute to a box of the output.
Box needed_box(const Geometry& geometry, size_t input, const Box& output) {
  const auto& [x, w, shape, options] = geometry;
  if (input > 0) {
    Box box = whole_box(input == 1 ? w : Shape{w[0]});
    box.set_interval(0, output.interval(1));
    return box;
  }
  Box box = whole_box(x);
  box.set_interval(0, output.interval(0));
  const Interval groups = geometry.groups_of(output.interval(1));
  const int64_t per_group = geometry.inputs_per_group();
  box.set_interval(1, {groups.low * per_group, groups.high * per_group});
  for (int axis = 0; axis < geometry.spatial(); ++axis) {
    if (geometry.is_whole(output, axis)) continue;
    const Interval read = cells_read(output.interval(2 + axis), axis, w[2 + axis], options);
    box.set_interval(2 + axis, clipped(read, x[2 + axis]));
  }
  return box;
}

/// Cells `read` of x, zeros where they lie outside the input.
Tensor padded_to(const Part& x, const Box& read) {
  if (x.box == read) return x.local;
  const Part padded{zeros(read.shape(), x.local.dtype(), x.device), read, x.device};
  if (!x.box.empty()) copy_into(view_of(padded, x.box), x.local);
  return padded.local;
}

/// Output channels by groups that a convolution can make at once: whole groups, or some channels of
/// one. With 4 channels a group [2, 13) is [2, 4), [4, 12), [12, 13).
std::vector<Interval> by_groups(Interval channels, int64_t per_group) {
  const Interval whole{divide_up(channels.low, per_group) * per_group,
                       channels.high / per_group * per_group};
  if (whole.low > whole.high) return {channels};  // inside of one group
  std::vector<Interval> parts;
  for (const Interval part :
       {Interval{channels.low, whole.low}, whole, Interval{whole.high, channels.high}}) {
    if (part.length() > 0) parts.push_back(part);
  }
  return parts;
}

using Convolution = Tensor (*)(const Tensor&, const Tensor&, const Tensor*, const ConvOptions&,
                               const Tensor*);
Convolution convolution_over(int dimensions) {
  static constexpr Convolution kFunctions[] = {&cuop::conv1d, &cuop::conv2d, &cuop::conv3d};
  return kFunctions[dimensions - 1];
}

Tensor convolve(const Geometry& geometry, const std::vector<Part>& parts, const Box& output,
                const Tensor* out) {
  const Convolution convolution = convolution_over(geometry.spatial());
  ConvOptions options = geometry.options;
  options.padding = Dims::filled(geometry.spatial(), 0);
  Box read = parts[0].box;
  for (int axis = 0; axis < geometry.spatial(); ++axis) {
    if (geometry.is_whole(output, axis)) {
      options.padding[axis] = option(geometry.options.padding, axis, 0);
    } else {
      read.set_interval(2 + axis, cells_read(output.interval(2 + axis), axis, geometry.w[2 + axis],
                                             geometry.options));
    }
  }
  const Tensor x = padded_to(parts[0], read);
  const Interval channels = output.interval(1), groups = geometry.groups_of(channels);
  const auto make = [&](Interval wanted, const Tensor* to) {
    const auto of_block = [&](const Tensor& tensor) {
      return slice(tensor, 0, wanted.low - channels.low, wanted.high - channels.low);
    };
    const Interval of = geometry.groups_of(wanted);
    const int64_t per_group = geometry.inputs_per_group();
    options.groups = of.length();
    const Tensor inputs =
        slice(x, 1, (of.low - groups.low) * per_group, (of.high - groups.low) * per_group);
    const Tensor bias = parts.size() > 2 ? of_block(parts[2].local) : Tensor();
    return convolution(inputs, of_block(parts[1].local), bias.is_defined() ? &bias : nullptr,
                       options, to);
  };
  const std::vector<Interval> runs = by_groups(channels, geometry.outputs_per_group());
  if (runs.size() == 1) return make(channels, out);
  const Tensor result = out != nullptr ? *out : empty(output.shape(), x.dtype(), x.device());
  for (const Interval run : runs) {
    const Tensor to = slice(result, 1, run.low - channels.low, run.high - channels.low);
    make(run, &to);
  }
  return result;
}

/// "conv2d" of images and so on: by the spatial dimensions that options name, else by the input's.
/// ShapeError for an input that has not so many.
std::string name_of(const ConvOptions& options, const Shape& x) {
  int spatial = 0;
  for (const Dims& each : {options.stride, options.padding, options.dilation}) {
    spatial = std::max(spatial, each.ndim());
  }
  if (spatial < 2 || spatial > 3) {  // one value stands for all dimensions
    if (x.ndim() >= 3 && x.ndim() <= 5) return cat("conv", x.ndim() - 2, "d");
    throw ShapeError(cat("conv: input of shape ", x, "; needed are 3 to 5 dimensions (N, C, ...)"));
  }
  const std::string name = cat("conv", spatial, "d");
  if (x.ndim() == spatial + 2) return name;
  throw ShapeError(cat(name, ": input has shape ", x, "; needed are ", spatial + 2, " dimensions (",
                       spatial == 2 ? "N, C, H, W" : "N, C, D, H, W", ")"));
}

void check_dtype(const std::string& who, const Placement& input, DType dtype) {
  if (input.dtype == dtype) return;
  throw DTypeError(cat(who, ": ", input.name, " is ", input.dtype, ", input is ", dtype,
                       "; they must share one dtype"));
}

Mapping map_conv(const ConvOptions& options, const std::vector<Placement>& inputs) {
  if (inputs.size() < 2) throw ExecutionError("conv: weight was not given");
  const Shape& x = inputs[0].shape;
  const Shape& w = inputs[1].shape;
  const std::string name = name_of(options, x);
  Mapping mapping;
  mapping.op = name;
  visit_dtype(NumericTypes{}, inputs[0].dtype, name.c_str(), [](auto) {});
  mapping.dtype = inputs[0].dtype;
  check_dtype(name, inputs[1], mapping.dtype);
  mapping.shape = conv_output_shape(name.c_str(), x, w, options);
  if (inputs.size() > 2) {
    check_dtype(name, inputs[2], mapping.dtype);
    if (inputs[2].shape != Shape{w[0]}) {
      throw ShapeError(
          cat(name, ": bias has shape ", inputs[2].shape, ", needed is ", Shape{w[0]}));
    }
  }
  mapping.may_chunk = true;
  mapping.speed = &Machine::conv_speed;
  mapping.skips_elements = true;  // between windows that are far apart
  const Geometry geometry{x, w, mapping.shape, options};
  mapping.needed = [geometry](size_t i, const Box& box) { return needed_box(geometry, i, box); };
  mapping.work = [geometry](const std::vector<Part>& parts, const Box& box, const Tensor* out) {
    return convolve(geometry, parts, box, out);
  };
  // Of images rows and columns; planes of volumes come before them.
  std::vector<SplitDim> dims{{0, "batch"}, {1, "channel"}};
  static constexpr const char* kSpatial[] = {"plane", "row", "column"};
  const int first = std::min(1, 5 - x.ndim());
  for (int dim = 2; dim < x.ndim(); ++dim) dims.push_back({dim, kSpatial[first + dim - 2]});
  mapping.choices = split_choices(inputs[0].sharding.mesh().size(), x.ndim(), dims);
  mapping.flops_per_element =
      2.0 * static_cast<double>(element_count(w)) / static_cast<double>(std::max<int64_t>(1, w[0]));
  return mapping;
}

}  // namespace

Operation conv_operation(const ConvOptions& options) {
  Operation operation =
      map_operation(conv_text(options), {"input", "weight", "bias"}, conv_mapping(options));
  operation.alone = [options](const Plan&, const std::vector<Tensor>& inputs) {
    const Tensor* const bias = inputs.size() > 2 ? &inputs[2] : nullptr;
    return convolution_over(inputs[0].ndim() - 2)(inputs[0], inputs[1], bias, options, nullptr);
  };
  return operation;
}

std::string conv_text(const ConvOptions& options) {
  return cat("conv stride ", options.stride, ", padding ", options.padding, ", dilation ",
             options.dilation, ", groups ", options.groups, ", activation ",
             name(options.activation));
}

DescribeMapping conv_mapping(const ConvOptions& options) {
  return [options](const auto& inputs, const std::string&) { return map_conv(options, inputs); };
}

DistTensor conv(const DistTensor& x, const DistTensor& w, const DistTensor* bias,
                const ConvOptions& options, const CallOptions& call) {
  std::vector<DistTensor> inputs{x, w};
  if (bias != nullptr) inputs.push_back(*bias);
  return run_sharded(conv_operation(options), inputs, call);
}

Tensor conv_from_root(const CommunicatorPtr& comm, const Tensor& x, const Tensor& w,
                      const Tensor& bias, const ConvOptions& options, const CallOptions& call) {
  return run_rooted(comm, conv_operation(options), {x, w, bias}, call);
}

}  // namespace cuop::dist
