#include "cuop/dist/algo/conv.h"

#include <algorithm>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/exec/call.h"
#include "cuop/dist/exec/map.h"
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

/// Rows of the input that rows [low, high) of the output read; they may lie outside the input.
Interval rows_read(Interval output, int64_t kernel, const ConvOptions& options) {
  const int64_t stride = option(options.stride, 0, 1);
  const int64_t padding = option(options.padding, 0, 0);
  const int64_t reach = option(options.dilation, 0, 1) * (kernel - 1);
  return {output.low * stride - padding, (output.high - 1) * stride - padding + reach + 1};
}

Interval clipped(Interval rows, int64_t size) {
  const int64_t low = std::clamp<int64_t>(rows.low, 0, size);
  return {low, std::clamp<int64_t>(rows.high, low, size)};
}

/// The sizes that decide which box of an input a box of the output reads.
struct Geometry {
  Shape x;
  Shape w;
  Shape output;
  ConvOptions options;

  /// All rows are made at once: the operator's own padding serves.
  bool has_all_rows(const Box& box) const { return box.interval(2) == Interval{0, output[2]}; }
};

/// What x (0), w (1) and bias (2) contribute to a box of the output.
Box needed_box(const Geometry& geometry, size_t input, const Box& output) {
  const auto& [x, w, shape, options] = geometry;
  if (input == 0) {
    Box box = whole_box(x);
    box.set_interval(0, output.interval(0));
    if (!geometry.has_all_rows(output)) {
      box.set_interval(2, clipped(rows_read(output.interval(2), w[2], options), x[2]));
    }
    return box;
  }
  Box box = whole_box(input == 1 ? w : Shape{w[0]});
  if (options.groups == 1) box.set_interval(0, output.interval(1));
  return box;
}

/// Rows [read.low, read.high) of x, zeros where they lie outside the input.
Tensor padded_rows(const Part& x, Interval read) {
  const Interval there = x.box.interval(2);
  if (there == read) return x.local;
  Shape shape = x.local.shape();
  shape[2] = read.length();
  Tensor padded = zeros(shape, x.local.dtype(), x.device);
  if (there.length() > 0) {
    copy_into(slice(padded, 2, there.low - read.low, there.high - read.low), x.local);
  }
  return padded;
}

Tensor convolve(const Geometry& geometry, const std::vector<Part>& parts, const Box& output) {
  const Tensor& w = parts[1].local;
  const Tensor* bias = parts.size() > 2 ? &parts[2].local : nullptr;
  const int spatial = geometry.x.ndim() - 2;
  Tensor x = parts[0].local;
  ConvOptions options = geometry.options;
  if (!geometry.has_all_rows(output)) {
    x = padded_rows(parts[0], rows_read(output.interval(2), w.shape(2), options));
    options.padding = Dims::filled(spatial, 0);
    for (int axis = 1; axis < spatial; ++axis) {
      options.padding[axis] = option(geometry.options.padding, axis, 0);
    }
  }
  using Function =
      Tensor (*)(const Tensor&, const Tensor&, const Tensor*, const ConvOptions&, const Tensor*);
  static constexpr Function kFunctions[] = {&cuop::conv1d, &cuop::conv2d, &cuop::conv3d};
  return kFunctions[spatial - 1](x, w, bias, options, nullptr);
}

Mapping map_conv(const ConvOptions& options, const std::vector<Placement>& inputs) {
  if (inputs.size() < 2) throw ExecutionError("conv: weight was not given");
  const Shape& x = inputs[0].shape;
  const Shape& w = inputs[1].shape;
  if (x.ndim() < 3 || x.ndim() > 5) {
    throw ShapeError(cat("conv: input of shape ", x, "; needed are 3 to 5 dimensions (N, C, ...)"));
  }
  const std::string name = cat("conv", x.ndim() - 2, "d");
  Mapping mapping;
  mapping.op = name;
  mapping.shape = conv_output_shape(name.c_str(), x, w, options);
  mapping.dtype = inputs[0].dtype;
  for (const Placement& input : inputs) {
    if (input.dtype != mapping.dtype) {
      throw DTypeError(cat(name, ": ", input.name, " is ", input.dtype, ", input is ",
                           mapping.dtype, "; they must share one dtype"));
    }
  }
  if (inputs.size() > 2 && inputs[2].shape != Shape{w[0]}) {
    throw ShapeError(cat(name, ": bias has shape ", inputs[2].shape, ", needed is ", Shape{w[0]}));
  }
  const Geometry geometry{x, w, mapping.shape, options};
  mapping.needed = [geometry](size_t i, const Box& box) { return needed_box(geometry, i, box); };
  mapping.work = [geometry](const std::vector<Part>& parts, const Box& box) {
    return convolve(geometry, parts, box);
  };
  const int ranks = inputs[0].sharding.mesh().size();
  const auto split = [&](int dim) { return split_over_ranks(ranks, x.ndim(), dim); };
  mapping.choices = {{"batch", split(0)}, {"row", split(2)}};
  if (options.groups == 1) mapping.choices.push_back({"channel", split(1)});
  mapping.flops_per_element =
      2.0 * static_cast<double>(element_count(w)) / static_cast<double>(std::max<int64_t>(1, w[0]));
  return mapping;
}

Operation operation(const ConvOptions& options) {
  return map_operation(
      cat("conv stride ", options.stride, ", padding ", options.padding, ", dilation ",
          options.dilation, ", groups ", options.groups, ", activation ", name(options.activation)),
      {"input", "weight", "bias"},
      [options](const auto& inputs, const std::string&) { return map_conv(options, inputs); });
}

}  // namespace

DistTensor conv(const DistTensor& x, const DistTensor& w, const DistTensor* bias,
                const ConvOptions& options, const CallOptions& call) {
  std::vector<DistTensor> inputs{x, w};
  if (bias != nullptr) inputs.push_back(*bias);
  return run_sharded(operation(options), inputs, call);
}

Tensor conv_from_root(const CommunicatorPtr& comm, const Tensor& x, const Tensor& w,
                      const Tensor& bias, const ConvOptions& options, const CallOptions& call) {
  return run_rooted(comm, operation(options), {x, w, bias}, call);
}

}  // namespace cuop::dist
