// Operations whose result falls into blocks, each made of blocks of the inputs in one step.
#include <algorithm>
#include <memory>

#include "cuop/backend/cuda/cudnn.h"
#include "cuop/core/divide_up.h"
#include "cuop/core/text.h"
#include "cuop/dist/algo/operations.h"
#include "cuop/dist/exec/planned.h"
#include "cuop/executor/operations.h"
#include "cuop/ops/conv/conv_bytes.h"

namespace cuop::executor {
namespace {

Tiling describe(const std::vector<Header>& inputs, const std::vector<std::string>& names,
                const dist::DescribeMapping& mapping_of) {
  const auto mapping =
      std::make_shared<const dist::Mapping>(mapping_of(placements_of(names, inputs), ""));
  Tiling tiling;
  tiling.op = mapping->op;
  tiling.names = names;
  tiling.inputs = inputs;
  tiling.output = {mapping->shape, mapping->dtype};
  for (int dim = 0; dim < mapping->shape.ndim(); ++dim) tiling.cut_dims.push_back(dim);
  tiling.flops = mapping->flops_per_element * static_cast<double>(element_count(mapping->shape));
  tiling.speed = mapping->speed;
  tiling.computed = mapping->dtype;
  tiling.needed = [mapping](size_t i, const Box& output, Interval) {
    return mapping->needed(i, output);
  };
  tiling.make = [mapping](const std::vector<Part>& parts, const Box& output, Interval) {
    return mapping->work(parts, output, nullptr);
  };
  return tiling;
}

TileOperation operation(const std::string& text, const std::vector<std::string>& names,
                        const dist::DescribeMapping& mapping,
                        const std::function<dist::Operation()>& over_ranks) {
  return {text, names,
          [=](const std::vector<Header>& inputs) { return describe(inputs, names, mapping); },
          over_ranks};
}

/// Elements of an output's input with the zeros around it, in whole strides along the last
/// dimension.
int64_t padded_elements(const ConvOptions& options, const Shape& weight, const Box& input,
                        const Box& output) {
  int64_t elements = input.interval(0).length() * input.interval(1).length();
  for (int dim = 2; dim < output.ndim(); ++dim) {
    const auto of = [&](const Dims& each, int64_t without) {
      const int axis = each.ndim() == 1 ? 0 : dim - 2;
      return each.ndim() == 0 ? without : each[axis];
    };
    const int64_t stride = of(options.stride, 1);
    const int64_t length = (output.interval(dim).length() - 1) * stride +
                           (weight[dim] - 1) * of(options.dilation, 1) + 1;
    elements *= dim + 1 == output.ndim() ? round_up(length, stride) : length;
  }
  return elements;
}

/// What a GPU's library or the parts of elements take of a tile, each of whose spatial axes is
/// whole or read without padding.
int64_t conv_work_bytes(const ConvOptions& options, const std::vector<Header>& inputs,
                        const Shape& whole, const Box& output, const WorkFigures& figures) {
  if (output.empty()) return 0;
  ConvOptions mine = options;
  mine.padding = Dims::filled(output.ndim() - 2, 0);
  mine.groups = 1;
  const int64_t per_group = inputs[1].shape[0] / options.groups;
  Shape x{output.interval(0).length(), inputs[1].shape[1]}, w = inputs[1].shape;
  // Channels of one group at a time, or of all, where there is one.
  w[0] = std::min(output.interval(1).length(), per_group);
  for (int dim = 2; dim < output.ndim(); ++dim) {
    const auto of = [&](const Dims& each, int64_t without) {
      return each.ndim() == 0 ? without : each[each.ndim() == 1 ? 0 : dim - 2];
    };
    const Interval made = output.interval(dim);
    const bool is_whole = made.length() == whole[dim];
    if (is_whole) mine.padding[dim - 2] = of(options.padding, 0);
    x.push_back(is_whole ? inputs[0].shape[dim]
                         : (made.length() - 1) * of(options.stride, 1) +
                               (w[dim] - 1) * of(options.dilation, 1) + 1);
  }
  return conv_bytes(x, w, inputs[0].dtype, mine, figures);
}

/// What a convolution takes: a copy of its input with a border of zeros where a tile is cut in
/// space, one of its result where a tile is cut through a group, of 16-bit floats copies in
/// float32, a library's own order of images in float32, and of what oneDNN has not the packed image
/// of the direct loops.
int64_t conv_scratch(const ConvOptions& options, const std::vector<Header>& inputs,
                     const std::function<Box(size_t, const Box&, Interval)>& needed,
                     const Box& output, Interval step) {
  constexpr int64_t kWide = sizeof(float), kSlack = 64, kSmall = 512;
  const Box input = needed(0, output, step);
  const DType dtype = inputs[0].dtype;
  const int64_t item = itemsize(dtype);
  int64_t bytes = (input.size() + output.size()) * item + kSmall;
  const bool is_half = dtype == DType::kFloat16 || dtype == DType::kBFloat16;
  if (is_half || dtype == DType::kFloat32) bytes += (input.size() + output.size()) * kWide;
  if (is_half) {
    bytes += output.size() * kWide;
    for (size_t i = 0; i < inputs.size(); ++i) bytes += needed(i, output, step).size() * kWide;
  } else if (dtype != DType::kFloat32) {
    const int64_t jobs = output.interval(0).length() * options.groups;
    bytes += (padded_elements(options, inputs[1].shape, input, output) + jobs * kSlack) * item;
  }
  return bytes;
}

}  // namespace

std::vector<dist::Placement> placements_of(const std::vector<std::string>& names,
                                           const std::vector<Header>& inputs) {
  return dist::placements_on(names, inputs, dist::Sharding::on_rank(dist::Mesh::line(1), 0));
}

TileOperation add_tiles() {
  return operation("add", {"a", "b"}, dist::add_mapping(), dist::add_operation);
}

TileOperation transpose_tiles(int64_t dim0, int64_t dim1) {
  return operation(cat("transpose dims ", dim0, ", ", dim1), {"x"},
                   dist::transpose_mapping(dim0, dim1),
                   [=] { return dist::transpose_operation(dim0, dim1); });
}

TileOperation conv_tiles(const ConvOptions& options) {
  TileOperation made =
      operation(dist::conv_text(options), {"input", "weight", "bias"}, dist::conv_mapping(options),
                [options] { return dist::conv_operation(options); });
  made.describe = [options, plain = made.describe](const std::vector<Header>& inputs) {
    Tiling tiling = plain(inputs);
    constexpr int64_t kFewest = 512;  // bytes that an engine may want for next to nothing
    tiling.least_workspace = kFewest;
    tiling.most_workspace = backend::cuda::kConvWorkspace;
    tiling.scratch = [options, inputs, needed = tiling.needed, whole = tiling.output.shape](
                         const Box& output, Interval step, const WorkFigures& figures) {
      return conv_scratch(options, inputs, needed, output, step) +
             conv_work_bytes(options, inputs, whole, output, figures);
    };
    return tiling;
  };
  return made;
}

}  // namespace cuop::executor
