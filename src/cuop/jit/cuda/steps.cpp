#include "cuop/jit/cuda/steps.h"

#include <algorithm>
#include <set>
#include <vector>

#include "cuop/jit/cuda/loops.h"
#include "cuop/memory/current.h"

namespace cuop::jit {

namespace {

bool is_made(const Node& node) {
  return node.kind == NodeKind::kOp || node.kind == NodeKind::kCast;
}

bool has_operations(const Expr& expr) {
  const std::vector<bool> is_needed = needed_nodes(expr);
  int operations = 0;
  for (size_t i = 0; i < expr.nodes().size(); ++i) {
    operations += is_needed[i] && expr.nodes()[i].kind == NodeKind::kOp ? 1 : 0;
  }
  return operations > 1;
}

bool writes_what_is_read(const Bindings& bindings) {
  for (const Tensor* output : bindings.outputs) {
    for (const Tensor* leaf : bindings.leaves) {
      if (may_overlap(*output, *leaf)) return true;
    }
  }
  return false;
}

class Steps {
 public:
  Steps(const Expr& expr, const Bindings& bindings)
      : expr_(expr), bindings_(bindings), values_(expr.nodes().size()) {
    // The last step that reads a value; what is an output is kept anyhow.
    last_use_.resize(values_.size(), 0);
    for (size_t i = 0; i < values_.size(); ++i) {
      for (const int argument : expr.nodes()[i].arguments) {
        if (argument >= 0) last_use_[static_cast<size_t>(argument)] = i;
      }
    }
    for (size_t k = 0; k < expr.outputs().size(); ++k) {
      values_[static_cast<size_t>(expr.outputs()[k])] = *bindings.outputs[k];
    }
    for (size_t i = 0; i < values_.size(); ++i) {
      const Node& node = expr.nodes()[i];
      if (node.kind != NodeKind::kLeaf) continue;
      values_[i] = *bindings.leaves[static_cast<size_t>(node.code)];
    }
  }

  bool run(const RunStep& run_step) {
    const std::vector<bool> is_needed = needed_nodes(expr_);
    for (size_t i = 0; i < values_.size(); ++i) {
      if (!is_needed[i] || !is_made(expr_.nodes()[i])) continue;
      if (!values_[i].is_defined()) values_[i] = temporary(expr_.nodes()[i].dtype);
      if (!run_one(i, run_step)) return false;
      for (const int argument : expr_.nodes()[i].arguments) {
        if (argument >= 0 && last_use_[static_cast<size_t>(argument)] == i) {
          values_[static_cast<size_t>(argument)] = Tensor();  // its memory serves the next step
        }
      }
    }
    return true;
  }

 private:
  Tensor temporary(DType dtype) const {
    const Device device = bindings_.outputs.front()->device();
    const int64_t bytes = element_count(bindings_.shape) * itemsize(dtype);
    return {memory::allocate_storage(bytes, device), contiguous_layout(bindings_.shape), dtype};
  }

  bool run_one(size_t index, const RunStep& run_step) const {
    const Node& node = expr_.nodes()[index];
    Expr step;
    std::vector<const Tensor*> leaves;
    std::vector<Scalar> parameters;
    std::vector<int> arguments;
    for (const int argument : node.arguments) {
      if (argument < 0) continue;
      const Node& from = expr_.node(argument);
      if (from.kind == NodeKind::kParameter) {
        parameters.push_back(bindings_.parameters[static_cast<size_t>(from.code)]);
        arguments.push_back(step.add_parameter(from.dtype));
      } else {
        leaves.push_back(&values_[static_cast<size_t>(argument)]);
        arguments.push_back(step.add_leaf(from.dtype));
      }
    }
    step.add_output(node.kind == NodeKind::kCast
                        ? step.add_cast(arguments.front(), node.dtype)
                        : step.add_op(node.code, {node.compute, node.dtype}, arguments));
    const Tensor* const output = &values_[index];
    return run_step(step, {bindings_.shape, 0, leaves, parameters, {&output, 1}});
  }

  const Expr& expr_;
  const Bindings& bindings_;
  std::vector<Tensor> values_;  ///< of the nodes; undefined before and after they are of use
  std::vector<size_t> last_use_;
};

}  // namespace

bool can_run_in_steps(const Expr& expr, const Bindings& bindings) {
  const auto is_step = [&](int output) { return is_made(expr.node(output)); };
  const std::set<int16_t> distinct(expr.outputs().begin(), expr.outputs().end());
  return std::all_of(expr.outputs().begin(), expr.outputs().end(), is_step) &&
         distinct.size() == expr.outputs().size() && has_operations(expr) &&
         !writes_what_is_read(bindings);
}

bool run_in_steps(const Expr& expr, const Bindings& bindings, const RunStep& run_step) {
  return Steps(expr, bindings).run(run_step);
}

}  // namespace cuop::jit
