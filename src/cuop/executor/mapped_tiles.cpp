// Operations whose result falls into blocks, each made of blocks of the inputs in one step.
#include <memory>

#include "cuop/core/text.h"
#include "cuop/dist/algo/mappings.h"
#include "cuop/dist/algo/operations.h"
#include "cuop/dist/exec/planned.h"
#include "cuop/executor/operations.h"

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
  tiling.efficiency = mapping->efficiency;
  tiling.computed = mapping->dtype;
  tiling.needed = [mapping](size_t i, const Box& output, Interval) {
    return mapping->needed(i, output);
  };
  tiling.make = [mapping](const std::vector<Part>& parts, const Box& output, Interval) {
    return mapping->work(parts, output);
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
  made.describe = [plain = made.describe](const std::vector<Header>& inputs) {
    Tiling tiling = plain(inputs);
    // A tile that is cut in space gets a border of zeros: a copy of its input.
    tiling.scratch = [needed = tiling.needed, item = itemsize(inputs[0].dtype)](const Box& output,
                                                                                Interval step) {
      return needed(0, output, step).size() * item;
    };
    return tiling;
  };
  return made;
}

}  // namespace cuop::executor
