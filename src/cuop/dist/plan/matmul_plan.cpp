#include "cuop/dist/plan/matmul_plan.h"

#include <algorithm>

#include "cuop/core/divide_up.h"
#include "cuop/core/text.h"

namespace cuop::dist {
namespace {

constexpr int64_t kMostPanels = 1 << 10;

struct Grid {
  int m = 1;
  int n = 1;
  int k = 1;
};

std::vector<std::pair<std::string, Grid>> grids(int ranks) {
  std::vector<std::pair<std::string, Grid>> result{{"row", {ranks, 1, 1}},
                                                   {"column", {1, ranks, 1}}};
  const size_t first_2d = result.size();
  for (int m = 2; m <= ranks / 2; ++m) {
    if (ranks % m == 0) result.push_back({"block_2d", {m, ranks / m, 1}});
  }
  if (result.size() == first_2d) {
    const Grid2d flat = compute_2d_grid(ranks);
    result.push_back({"block_2d", {flat.rows, flat.cols, 1}});
  }
  for (int k = 2; k <= ranks; ++k) {
    if (ranks % k != 0) continue;
    for (int m = 1; m <= ranks / k; ++m) {
      if (ranks / k % m == 0) result.push_back({"k_split", {m, ranks / k / m, k}});
    }
  }
  if (ranks == 1) result.push_back({"k_split", {1, 1, 1}});
  return result;
}

/// The operands as multiplied lie as `a` and `b` say, partial products as `partial`, C as `c`.
Plan plan_grid(const MatmulProblem& problem, const Machine& machine, const std::string& strategy,
               const std::string& detail, const Sharding& a, const Sharding& b,
               const Sharding& partial, const Sharding& c) {
  Plan plan{"matmul", strategy, detail, problem.a.mesh().size()};
  const Shape a_shape{problem.m, problem.k};
  const Shape b_shape{problem.k, problem.n};
  const Shape c_shape{problem.m, problem.n};
  const Sharding& wanted = problem.c ? *problem.c : c;
  add_input(plan, machine, {"A", a_shape, problem.dtype, problem.a}, a);
  add_input(plan, machine, {"B", b_shape, problem.dtype, problem.b}, b);
  double flops = 0;
  for (int rank = 0; rank < plan.ranks; ++rank) {
    const Box block = a.owner_box(a_shape, rank);
    if (block.empty()) continue;
    flops =
        std::max(flops, 2.0 * static_cast<double>(block.size()) *
                            static_cast<double>(b.owner_box(b_shape, rank).interval(1).length()));
  }
  const int64_t a_bytes = largest_block(a_shape, problem.dtype, a);
  const int64_t b_bytes = largest_block(b_shape, problem.dtype, b);
  const int64_t c_bytes = largest_block(c_shape, problem.dtype, partial);
  add_compute(plan, machine, "C = A @ B of the local blocks", flops, a_bytes + b_bytes + c_bytes,
              problem.dtype);
  if (!(partial == c)) {
    add_move(plan, machine, "add the partial products of each block of C",
             partial.owner_boxes(c_shape), needs_of(c.owner_boxes(c_shape)), problem.dtype,
             Sources::kAll);
  }
  add_output(plan, machine, {"C", c_shape, problem.dtype, c}, problem.c);

  const int64_t held = largest_block(a_shape, problem.dtype, problem.a) +
                       largest_block(b_shape, problem.dtype, problem.b);
  const auto needed = [&](int64_t panels) {
    // With panels an operand that has to be fetched is there one panel at a time.
    const int64_t fetched_a = same_owners(problem.a, a, a_shape) ? 0 : divide_up(a_bytes, panels);
    const int64_t fetched_b = same_owners(problem.b, b, b_shape) ? 0 : divide_up(b_bytes, panels);
    return held + fetched_a + fetched_b + c_bytes +
           (partial == c ? 0 : largest_block(c_shape, problem.dtype, c)) +
           (same_owners(c, wanted, c_shape) ? 0 : largest_block(c_shape, problem.dtype, wanted));
  };
  int64_t panels = 1;
  const int64_t most = std::min(kMostPanels, std::max<int64_t>(problem.k, 1));
  while (needed(panels) > machine.memory && panels < most) panels = std::min(panels * 2, most);
  plan.settings["panels"] = panels;
  plan.memory_per_rank = needed(panels);
  return plan;
}

}  // namespace

Plan plan_matmul(const MatmulProblem& problem, const Machine& machine, std::string_view strategy) {
  std::vector<Plan> plans;
  const int root = problem.a.single_rank();
  if (root >= 0 && problem.b.single_rank() == root) {
    const Sharding& here = problem.a;
    plans.push_back(
        plan_grid(problem, machine, "root", cat("rank ", root), here, here, here, here));
  }
  for (const auto& [strategy_name, grid] : grids(problem.a.mesh().size())) {
    const Mesh mesh({grid.m, grid.n, grid.k}, {"m", "n", "k"});
    using Axes = Spec::Axes;
    const Sharding partial(mesh, P(Axes{"m"}, Axes{"n"}));
    plans.push_back(
        plan_grid(problem, machine, strategy_name, cat("grid ", grid.m, "x", grid.n, "x", grid.k),
                  Sharding(mesh, P(Axes{"m"}, Axes{"k"})), Sharding(mesh, P(Axes{"k"}, Axes{"n"})),
                  partial, grid.k == 1 ? partial : Sharding(mesh, P(Axes{"m", "k"}, Axes{"n"}))));
  }
  return choose(std::move(plans), machine, strategy);
}

Sharding partial_sharding(const Plan& plan) {
  const Sharding& a = plan.inputs[0].sharding;
  if (a.single_rank() >= 0) return a;
  return Sharding(a.mesh(), P(Spec::Axes{"m"}, Spec::Axes{"n"}));
}

}  // namespace cuop::dist
