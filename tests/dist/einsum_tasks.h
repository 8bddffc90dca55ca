// Contractions to plan.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "cuop/core/text.h"
#include "cuop/dist/plan/einsum_plan.h"
#include "cuop/ops/einsum/equation.h"
#include "cuop/ops/einsum/pair_layout_internal.h"
#include "cuop/ops/einsum/path.h"

namespace cuop::dist::rank_test {

inline void follow_orders(EinsumTask& task, std::vector<std::vector<ContractionStep>> orders) {
  task.forms.clear();
  for (const auto& steps : orders) {
    task.forms.push_back(pairwise::row_major_forms(task.contraction, steps));
  }
  task.orders = std::move(orders);
}

/// Operands that lie so, one after the other and again from the first.
inline EinsumTask einsum_task(std::string_view equation, const std::vector<Shape>& shapes,
                              const std::vector<Sharding>& lying, DType dtype = DType::kFloat32) {
  const EinsumProblem problem = einsum_problem(equation, shapes);
  EinsumTask task;
  for (size_t i = 0; i < shapes.size(); ++i) {
    task.inputs.push_back({cat("operand ", i), shapes[i], dtype, lying[i % lying.size()]});
  }
  task.labels = problem.equation.operands;
  task.contraction = problem.contraction;
  follow_orders(task, find_orders(problem.contraction, {}, 4));
  task.output = problem.equation.output;
  task.shape = problem.shape;
  task.dtype = dtype;
  task.names = problem.equation.names;
  return task;
}

}  // namespace cuop::dist::rank_test
