#include "cuop/dist/algo/elementwise.h"

#include <algorithm>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/exec/call.h"
#include "cuop/dist/exec/map.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/index/view.h"

namespace cuop::dist {
namespace {

int longest_dim(const Shape& shape) {
  return static_cast<int>(std::max_element(shape.begin(), shape.end()) - shape.begin());
}

using Binary = Tensor (*)(const Operand&, const Operand&, const Tensor* out);

/// Element-wise `compute`; the result of a true division has a floating dtype whatever the inputs.
Operation binary_operation(const std::string& name, Binary compute, bool is_division) {
  return map_operation(name, {"a", "b"}, [=](const auto& inputs, const std::string& strategy) {
    if (inputs.size() != 2) throw ExecutionError(cat(name, ": b was not given"));
    Mapping mapping;
    mapping.op = name;
    mapping.shape = broadcast_shapes(inputs[0].shape, inputs[1].shape, name.c_str());
    mapping.dtype = promote(inputs[0].dtype, inputs[1].dtype);
    if (is_division) mapping.dtype = to_inexact(mapping.dtype);
    mapping.needed = [inputs](size_t i, const Box& box) {
      return broadcast_source(box, inputs[i].shape);
    };
    for (size_t i = 0; i < 2; ++i) {
      if (inputs[i].shape == mapping.shape && inputs[i].sharding.single_rank() < 0) {
        mapping.choices.push_back({i == 0 ? "keep_a" : "keep_b", inputs[i].sharding});
      }
    }
    // Results stay with their inputs where they can, so that chains of operations move nothing.
    if (mapping.choices.empty() || strategy == "row") {
      mapping.choices.push_back(
          {"row", split_over_ranks(inputs[0].sharding.mesh().size(), mapping.shape.ndim(),
                                   longest_dim(mapping.shape))});
    }
    mapping.work = [compute](const std::vector<Part>& parts, const Box&) {
      return compute(parts[0].local, parts[1].local, nullptr);
    };
    return mapping;
  });
}

Operation addition() { return binary_operation("add", cuop::add, false); }

Box swapped_box(Box box, int dim0, int dim1) {
  std::swap(box.low[dim0], box.low[dim1]);
  std::swap(box.high[dim0], box.high[dim1]);
  return box;
}

Operation transposition(int64_t dim0, int64_t dim1) {
  const auto describe = [=](const std::vector<Placement>& inputs, const std::string& strategy) {
    const Placement& x = inputs.at(0);
    const int a = normalize_axis(dim0, x.shape.ndim(), "transpose");
    const int b = normalize_axis(dim1, x.shape.ndim(), "transpose");
    Mapping mapping;
    mapping.op = "transpose";
    mapping.shape = x.shape;
    std::swap(mapping.shape[a], mapping.shape[b]);
    mapping.dtype = x.dtype;
    mapping.flops_per_element = 0;
    mapping.needed = [a, b](size_t, const Box& box) { return swapped_box(box, a, b); };
    if (x.sharding.single_rank() < 0) {
      mapping.choices.push_back({"keep", x.sharding.swapped(a, b, x.shape.ndim())});
    }
    if (mapping.choices.empty() || strategy == "row") {
      mapping.choices.push_back(
          {"row", split_over_ranks(x.sharding.mesh().size(), x.shape.ndim(), a)});
    }
    mapping.work = [a, b](const std::vector<Part>& parts, const Box&) {
      return swap_axes(parts[0].local, a, b);
    };
    return mapping;
  };
  return map_operation(cat("transpose dims ", dim0, ", ", dim1), {"x"}, describe);
}

}  // namespace

DistTensor add(const DistTensor& a, const DistTensor& b, const CallOptions& options) {
  return run_sharded(addition(), {a, b}, options);
}

DistTensor subtract(const DistTensor& a, const DistTensor& b, const CallOptions& options) {
  return run_sharded(binary_operation("subtract", cuop::subtract, false), {a, b}, options);
}

DistTensor multiply(const DistTensor& a, const DistTensor& b, const CallOptions& options) {
  return run_sharded(binary_operation("multiply", cuop::multiply, false), {a, b}, options);
}

DistTensor divide(const DistTensor& a, const DistTensor& b, const CallOptions& options) {
  return run_sharded(binary_operation("divide", cuop::divide, true), {a, b}, options);
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
