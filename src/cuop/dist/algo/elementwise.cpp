#include "cuop/dist/algo/elementwise.h"

#include <algorithm>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/exec/map.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/index/view.h"

namespace cuop::dist {
namespace {

int longest_dim(const Shape& shape) {
  return static_cast<int>(std::max_element(shape.begin(), shape.end()) - shape.begin());
}

using Binary = Tensor (*)(const Tensor&, const Tensor&);

/// Element-wise `compute`; the result of a true division has a floating dtype whatever the inputs.
Operation binary_operation(const std::string& name, Binary compute, bool is_division) {
  const auto plan = [name, is_division](const std::vector<Placement>& inputs,
                                        const std::optional<Sharding>& output,
                                        const Machine& machine, const std::string& strategy) {
    if (inputs.size() != 2) throw ExecutionError(cat(name, ": b was not given"));
    MapProblem problem;
    problem.op = name;
    problem.inputs = inputs;
    problem.shape = broadcast_shapes(inputs[0].shape, inputs[1].shape, name.c_str());
    problem.dtype = promote(inputs[0].dtype, inputs[1].dtype);
    if (is_division) problem.dtype = to_inexact(problem.dtype);
    problem.needed = [&](size_t i, const Box& box) {
      return broadcast_source(box, inputs[i].shape);
    };
    for (size_t i = 0; i < 2; ++i) {
      if (inputs[i].shape == problem.shape && inputs[i].sharding.single_rank() < 0) {
        problem.choices.push_back({i == 0 ? "keep_a" : "keep_b", inputs[i].sharding});
      }
    }
    // Results stay with their inputs where they can, so that chains of operations move nothing.
    if (problem.choices.empty() || strategy == "row") {
      problem.choices.push_back(
          {"row", split_over_ranks(inputs[0].sharding.mesh().size(), problem.shape.ndim(),
                                   longest_dim(problem.shape))});
    }
    problem.wanted = output;
    return plan_map(problem, machine, strategy);
  };
  const auto execute = [compute](const Plan& made, const std::vector<DistTensor>& inputs) {
    return execute_map(
        made, inputs,
        [&](size_t i, const Box& box) { return broadcast_source(box, inputs[i].shape()); },
        [&](const std::vector<Part>& parts, const Box&) {
          return compute(parts[0].local, parts[1].local);
        });
  };
  return {name, {"a", "b"}, plan, execute};
}

Operation addition() {
  return binary_operation(
      "add", [](const Tensor& a, const Tensor& b) { return cuop::add(a, b); }, false);
}

Box swapped_box(Box box, int dim0, int dim1) {
  std::swap(box.low[dim0], box.low[dim1]);
  std::swap(box.high[dim0], box.high[dim1]);
  return box;
}

Operation transposition(int64_t dim0, int64_t dim1) {
  const auto plan = [dim0, dim1](const std::vector<Placement>& inputs,
                                 const std::optional<Sharding>& output, const Machine& machine,
                                 const std::string& strategy) {
    const Placement& x = inputs.at(0);
    const int a = normalize_axis(dim0, x.shape.ndim(), "transpose");
    const int b = normalize_axis(dim1, x.shape.ndim(), "transpose");
    MapProblem problem;
    problem.op = "transpose";
    problem.inputs = inputs;
    problem.shape = x.shape;
    std::swap(problem.shape[a], problem.shape[b]);
    problem.dtype = x.dtype;
    problem.flops_per_element = 0;
    problem.needed = [a, b](size_t, const Box& box) { return swapped_box(box, a, b); };
    if (x.sharding.single_rank() < 0) {
      problem.choices.push_back({"keep", x.sharding.swapped(a, b, x.shape.ndim())});
    }
    if (problem.choices.empty() || strategy == "row") {
      problem.choices.push_back(
          {"row", split_over_ranks(x.sharding.mesh().size(), x.shape.ndim(), a)});
    }
    problem.wanted = output;
    return plan_map(problem, machine, strategy);
  };
  const auto execute = [dim0, dim1](const Plan& made, const std::vector<DistTensor>& inputs) {
    const int a = normalize_axis(dim0, inputs[0].ndim(), "transpose");
    const int b = normalize_axis(dim1, inputs[0].ndim(), "transpose");
    return execute_map(
        made, inputs, [a, b](size_t, const Box& box) { return swapped_box(box, a, b); },
        [a, b](const std::vector<Part>& parts, const Box&) {
          return swap_axes(parts[0].local, a, b);
        });
  };
  return {cat("transpose dims ", dim0, ", ", dim1), {"x"}, plan, execute};
}

}  // namespace

DistTensor add(const DistTensor& a, const DistTensor& b, const CallOptions& options) {
  return run_sharded(addition(), {a, b}, options);
}

DistTensor subtract(const DistTensor& a, const DistTensor& b, const CallOptions& options) {
  const Binary compute = [](const Tensor& x, const Tensor& y) { return cuop::subtract(x, y); };
  return run_sharded(binary_operation("subtract", compute, false), {a, b}, options);
}

DistTensor multiply(const DistTensor& a, const DistTensor& b, const CallOptions& options) {
  const Binary compute = [](const Tensor& x, const Tensor& y) { return cuop::multiply(x, y); };
  return run_sharded(binary_operation("multiply", compute, false), {a, b}, options);
}

DistTensor divide(const DistTensor& a, const DistTensor& b, const CallOptions& options) {
  const Binary compute = [](const Tensor& x, const Tensor& y) { return cuop::divide(x, y); };
  return run_sharded(binary_operation("divide", compute, true), {a, b}, options);
}

DistTensor transpose(const DistTensor& x, int64_t dim0, int64_t dim1, const CallOptions& options) {
  return run_sharded(transposition(dim0, dim1), {x}, options);
}

Tensor add_from_root(const CommunicatorPtr& comm, const Tensor& a, const Tensor& b,
                     const CallOptions& options) {
  return run_rooted(comm, addition(), {a, b}, options);
}

Tensor transpose_from_root(const CommunicatorPtr& comm, const Tensor& x, int64_t dim0, int64_t dim1,
                           const CallOptions& options) {
  return run_rooted(comm, transposition(dim0, dim1), {x}, options);
}

}  // namespace cuop::dist
