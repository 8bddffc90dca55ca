// Operations whose result is made block by block: planned as plan/map_plan.h says; then every rank
// fetches what its block of the result needs and computes it.
#pragma once

#include "cuop/dist/exec/exchange.h"
#include "cuop/dist/exec/operation.h"
#include "cuop/dist/plan/map_plan.h"

namespace cuop::dist {

struct Mapping : MapProblem {
  /// Computes the block `output` of the result from the parts of the inputs that it needs. Not
  /// called where the block is empty. May write it into `out`, if that is given and of its shape
  /// and dtype, and returns `out` then.
  std::function<Tensor(const std::vector<Part>& inputs, const Box& output, const Tensor* out)> work;
};

/// All of the mapping of inputs that lie so but `inputs` and `wanted`, under a strategy that is
/// forced ("" when none is) or chosen: called to plan and again to work.
using DescribeMapping =
    std::function<Mapping(const std::vector<Placement>& inputs, const std::string& strategy)>;

Operation map_operation(std::string text, std::vector<std::string> names,
                        const DescribeMapping& describe);

}  // namespace cuop::dist
