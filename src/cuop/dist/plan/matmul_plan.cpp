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

  int size() const { return m * n * k; }
  const char* strategy() const {
    if (k > 1) return "k_split";
    if (m > 1 && n > 1) return "block_2d";
    return n > 1 ? "column" : "row";
  }
};

/// Grids of `size` ranks, those that split rows first: the first of equally fast ones is taken.
void add_grids(int size, std::vector<Grid>& grids) {
  for (int k = 1; k <= size; ++k) {
    if (size % k != 0) continue;
    for (int m = size / k; m >= 1; --m) {
      if (size / k % m == 0) grids.push_back({m, size / k / m, k});
    }
  }
}

using NamedGrid = std::pair<std::string, Grid>;

bool has(const std::vector<NamedGrid>& grids, std::string_view strategy) {
  return std::any_of(grids.begin(), grids.end(),
                     [&](const NamedGrid& each) { return each.first == strategy; });
}

/// The grids over all ranks, and over fewer: a product that is short in every dimension gains
/// nothing from more ranks, and 2 x 3 of 7 ranks move less than 1 x 7. A forced strategy uses all
/// ranks where it can; where no grid has its shape, it is one that splits less.
std::vector<NamedGrid> named_grids(int ranks, std::string_view forced) {
  constexpr int kAllSizes = 16;  // of more ranks only grids that leave less than an eighth idle
  std::vector<NamedGrid> named;
  for (int size = ranks; size > 1; --size) {
    if (size < ranks && has(named, forced)) break;
    if (ranks > kAllSizes && size <= ranks - ranks / 8) break;
    std::vector<Grid> grids;
    add_grids(size, grids);
    for (const Grid& grid : grids) named.push_back({grid.strategy(), grid});
  }
  for (const char* strategy : {"row", "column", "block_2d", "k_split"}) {
    if (!has(named, strategy)) named.push_back({strategy, {1, ranks, 1}});
  }
  return named;
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
  const int ranks = problem.a.mesh().size();
  for (const auto& [strategy_name, grid] : named_grids(ranks, strategy)) {
    const Mesh mesh({grid.m, grid.n, grid.k}, {"m", "n", "k"}, ranks - grid.size());
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
