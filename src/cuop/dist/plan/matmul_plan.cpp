#include "cuop/dist/plan/matmul_plan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "cuop/core/divide_up.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/plan/overlap.h"
#include "cuop/dist/plan/rank_grids.h"

namespace cuop::dist {
namespace {

constexpr int64_t kMostPanels = 1 << 10;

constexpr const char* kProduct = "C = A @ B of the local blocks";

/// The product of the blocks of the rank that has most to do; without flops where all are empty.
struct LocalProduct {
  ProductSides sides;
  double flops = 0;
};

/// How often a product's operands and result pass through memory. Products of all but the largest
/// matrices hide little of that. Those of 16-bit floats copy each matrix where rows fill no whole
/// 16 bytes (ops/matmul/padded_product_internal.h), rows of an odd length at half the rate: 200
/// shapes on two H200s.
int64_t memory_passes(const MatmulProblem& problem, DType dtype) {
  const auto is_whole = [&](int64_t unit) {
    return problem.n % unit == 0 && problem.k % unit == 0;
  };
  if (itemsize(dtype) != 2 || is_whole(8)) return 1;
  return is_whole(2) ? 3 : 5;
}

PlanStep product_step(const MatmulProblem& problem, const Machine& machine, DType dtype,
                      const LocalProduct& local, int64_t bytes,
                      const std::string& text = kProduct) {
  Plan plan;
  add_compute(plan, machine, text, local.flops, 0, dtype, product_efficiency(machine, local.sides));
  plan.steps[0].seconds +=
      compute_seconds(machine, 0, memory_passes(problem, dtype) * bytes, dtype);
  return plan.steps[0];
}

/// Of operands in float32 that are rounded first, so that the product has to be scaled.
PlanStep narrow_product_step(const MatmulProblem& problem, const Machine& machine, DType wire,
                             const LocalProduct& local, int64_t operands, int64_t result) {
  PlanStep step = product_step(problem, machine, wire, local, operands / 2 + result,
                               cat(kProduct, ", rounded to ", wire));
  // Operands are read to find their largest elements, and to be rounded.
  const int64_t passes = 2 * operands + operands / 2 + 2 * result;
  step.seconds += compute_seconds(machine, 0, passes, DType::kFloat32);
  return step;
}

/// The steps by which operands and result are moved, to say how they travel on a wire by cost.
class MovedBy {
 public:
  explicit MovedBy(Plan& plan) : plan_(plan) {}

  /// Those since the last call are not of interest.
  void skip() { known_ = plan_.steps.size(); }
  /// The one since the last call, if there is one.
  void note(const std::string& key) {
    steps_[key] = plan_.steps.size() > known_ ? std::optional(known_) : std::nullopt;
    skip();
  }
  void settle(const MatmulProblem& problem, const Machine& machine, int64_t panels) {
    for (const auto& [key, number] : steps_) {
      Wire wire;
      if (number) {
        const PlanStep& step = plan_.steps[*number];
        const int64_t pieces = key == "sparse_c" ? 1 : panels;
        const LinkLoad load{(step.rank_bytes - step.network_bytes) / pieces, step.messages,
                            step.network_bytes / pieces,
                            step.network_bytes > 0 ? step.messages : 0};
        wire = problem.wire.over(machine, problem.dtype, load);
      }
      plan_.settings[key] = wire.per_mille();
    }
  }

 private:
  Plan& plan_;
  size_t known_ = 0;
  std::map<std::string, std::optional<size_t>> steps_;
};

/// The steps by which an operand comes.
struct OperandSteps {
  size_t first = 0, last = 0;

  double seconds(const Plan& plan) const {
    double all = 0;
    for (size_t i = first; i < last; ++i) all += plan.steps[i].seconds;
    return all;
  }
};

/// Whether blocks travel as they are, also those of a wire by cost.
bool goes_plain(const Wire& wire, const Plan& plan) {
  if (!wire.is_by_cost) return wire.form == Wire::Form::kPlain;
  return std::ranges::all_of(std::array{"sparse_a", "sparse_b", "sparse_c"}, [&](const char* key) {
    return Wire::of_per_mille(plan.setting(key)).form == Wire::Form::kPlain;
  });
}

/// C is made in chunks while the operand that takes longer comes, and C leaves.
void make_in_chunks(Plan& plan, const Machine& machine, const std::array<OperandSteps, 2>& operands,
                    size_t product, const Sharding& c, const Shape& c_shape) {
  const size_t chunked = operands[0].seconds(plan) > operands[1].seconds(plan) ? 0 : 1;
  std::vector<size_t> moves;
  for (size_t i = operands[chunked].first; i < operands[chunked].last; ++i) moves.push_back(i);
  for (size_t i = product + 1; i < plan.steps.size(); ++i) moves.push_back(i);
  const int64_t most = most_chunks(c.owner_boxes(c_shape), static_cast<int>(chunked), kChunkUnit);
  // Shorter products do not keep all of a GPU busy.
  constexpr double kLeastSeconds = 1e-4;
  const double useful = plan.steps[product].seconds / kLeastSeconds;
  overlap_moves(plan, machine, moves, product,
                static_cast<int64_t>(std::min(static_cast<double>(most), useful)));
  if (chunks_of(plan) > 1) plan.settings["chunked"] = static_cast<int64_t>(chunked);
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
  const DType wire = problem.wire.planned_dtype(problem.dtype);
  MovedBy moves(plan);
  std::array<OperandSteps, 2> operands;
  const auto add_operand = [&](OperandSteps& steps, const Placement& operand, const Sharding& to) {
    steps.first = plan.steps.size();
    add_input(plan, machine, operand, to, true);
    steps.last = plan.steps.size();
  };
  add_operand(operands[0], {"A", a_shape, wire, problem.a}, a);
  moves.note("sparse_a");
  add_operand(operands[1], {"B", b_shape, wire, problem.b}, b);
  moves.note("sparse_b");
  if (wire != problem.dtype) {  // read twice and written on both sides
    int64_t elements = 0;
    for (const PlanStep& step : plan.steps) elements += step.rank_bytes / itemsize(wire);
    if (!same_owners(c, wanted, c_shape)) elements += element_count(c_shape);
    add_compute(plan, machine, cat("what travels rounded to ", wire, " and back"), 0,
                4 * elements * itemsize(problem.dtype), problem.dtype);
  }
  LocalProduct local;
  for (int rank = 0; rank < plan.ranks; ++rank) {
    const Box block = a.owner_box(a_shape, rank);
    if (block.empty()) continue;
    const ProductSides sides{static_cast<double>(block.interval(0).length()),
                             static_cast<double>(b.owner_box(b_shape, rank).interval(1).length()),
                             static_cast<double>(block.interval(1).length())};
    const double flops = 2.0 * sides.m * sides.n * sides.k;
    if (flops > local.flops) local = {sides, flops};
  }
  const int64_t a_bytes = largest_block(a_shape, problem.dtype, a);
  const int64_t b_bytes = largest_block(b_shape, problem.dtype, b);
  const DType wide = compute_dtype(problem.dtype);  // of partial sums of 16-bit products
  const DType summed = partial == c ? problem.dtype : wide;
  const int64_t c_bytes = largest_block(c_shape, summed, partial);
  PlanStep product =
      product_step(problem, machine, problem.dtype, local, a_bytes + b_bytes + c_bytes);
  const bool travels = !same_owners(problem.a, a, a_shape) || !same_owners(problem.b, b, b_shape);
  const bool can_narrow = problem.may_narrow && wire != problem.dtype && travels;
  bool is_narrow = false;
  if (can_narrow && problem.dtype == DType::kFloat32) {
    const PlanStep narrow =
        narrow_product_step(problem, machine, wire, local, a_bytes + b_bytes, c_bytes);
    is_narrow = narrow.seconds < product.seconds;
    if (is_narrow) product = narrow;
  }
  const size_t product_at = plan.steps.size();
  plan.steps.push_back(std::move(product));
  plan.settings["narrow"] = is_narrow ? 1 : 0;
  if (!(partial == c)) {
    add_move(plan, machine, "add the partial products of each block of C",
             partial.owner_boxes(c_shape), needs_of(c.owner_boxes(c_shape)), summed,
             Sources::kAll);  // in full: they are added up
  }
  moves.skip();
  add_output(plan, machine, {"C", c_shape, wire, c}, problem.c);
  moves.note("sparse_c");
  for (Placement& output : plan.outputs) output.dtype = problem.dtype;

  const int64_t held = largest_block(a_shape, problem.dtype, problem.a) +
                       largest_block(b_shape, problem.dtype, problem.b);
  const auto needed = [&](int64_t panels) {
    // With panels an operand that has to be fetched is there one panel at a time.
    const int64_t fetched_a = same_owners(problem.a, a, a_shape) ? 0 : divide_up(a_bytes, panels);
    const int64_t fetched_b = same_owners(problem.b, b, b_shape) ? 0 : divide_up(b_bytes, panels);
    const bool is_wide = wide != problem.dtype && sums_panels(panels, partial, c);
    const DType sum = is_wide ? wide : problem.dtype;
    const int64_t rounded = is_wide ? largest_block(c_shape, problem.dtype, c) : 0;
    const int64_t narrowed =  // a panel of both, and what is made of it
        is_narrow ? divide_up(a_bytes + b_bytes, 2 * panels) + (panels > 1 ? c_bytes : 0) : 0;
    return held + fetched_a + fetched_b + largest_block(c_shape, sum, partial) + rounded +
           narrowed + (partial == c ? 0 : largest_block(c_shape, sum, c)) +
           (same_owners(c, wanted, c_shape) ? 0 : largest_block(c_shape, problem.dtype, wanted));
  };
  int64_t panels = 1;
  const int64_t most = std::min(kMostPanels, std::max<int64_t>(problem.k, 1));
  // Sums of 16-bit panels are wider: where no number of panels fits, one may need least.
  for (int64_t more = 1; needed(panels) > machine.memory && more < most;) {
    more = std::min(more * 2, most);
    if (needed(more) < needed(panels)) panels = more;
  }
  plan.settings["panels"] = panels;
  plan.settings["chunks"] = 1;
  if (problem.wire.is_by_cost) moves.settle(problem, machine, panels);
  if (panels == 1 && partial == c && goes_plain(problem.wire, plan)) {
    make_in_chunks(plan, machine, operands, product_at, c, c_shape);
  }
  plan.memory_per_rank = needed(panels);
  return plan;
}

}  // namespace

void check_matrices(const char* who, const std::vector<Placement>& inputs) {
  if (inputs.size() != 2) {
    throw ExecutionError(cat(who, ": two matrices are needed, B was not given"));
  }
  const Shape& a = inputs[0].shape;
  const Shape& b = inputs[1].shape;
  if (a.ndim() == 2 && b.ndim() == 2 && a[1] == b[0]) return;
  throw ShapeError(
      cat(who, ": shapes ", a, " and ", b, " do not fit; needed are (M, K) and (K, N)"));
}

Plan plan_matmul(const MatmulProblem& problem, const Machine& machine, std::string_view strategy) {
  std::vector<Plan> plans;
  const auto add = [&](Plan plan, const RankGrid& grid) {
    plan.settings.insert({{"pm", grid.m}, {"pn", grid.n}, {"pk", grid.k}});
    plans.push_back(std::move(plan));
  };
  const int root = problem.a.single_rank();
  const bool has_root = root >= 0 && problem.b.single_rank() == root;
  const int ranks = problem.a.mesh().size();
  // A product that is short in every dimension gains nothing from more ranks, and 2 x 3 of 7 ranks
  // move less than 1 x 7.
  constexpr GridChoice kAny{.splits_k = true, .leaves_idle = true};
  const std::vector<NamedGrid> grids = named_grids(ranks, strategy, kAny);
  // Of a thousand ranks all grids take a second, and a strategy that is forced needs its own alone.
  const bool is_known =
      (strategy == "root" && has_root) ||
      std::ranges::any_of(grids, [&](const NamedGrid& each) { return each.strategy == strategy; });
  const auto is_wanted = [&](std::string_view name) { return !is_known || name == strategy; };
  if (has_root && is_wanted("root")) {
    const Sharding& here = problem.a;
    add(plan_grid(problem, machine, "root", cat("rank ", root), here, here, here, here),
        RankGrid{0, 0, 0});
  }
  for (const auto& [strategy_name, grid] : grids) {
    if (!is_wanted(strategy_name)) continue;
    const Mesh mesh({grid.m, grid.n, grid.k}, {"m", "n", "k"}, ranks - grid.size());
    using Axes = Spec::Axes;
    const Sharding partial(mesh, P(Axes{"m"}, Axes{"n"}));
    add(plan_grid(problem, machine, strategy_name, cat("grid ", grid.m, "x", grid.n, "x", grid.k),
                  Sharding(mesh, P(Axes{"m"}, Axes{"k"})), Sharding(mesh, P(Axes{"k"}, Axes{"n"})),
                  partial, grid.k == 1 ? partial : Sharding(mesh, P(Axes{"m", "k"}, Axes{"n"}))),
        grid);
  }
  return choose(std::move(plans), machine, strategy, matmul_floor(problem, machine));
}

Floor matmul_floor(const MatmulProblem& problem, const Machine& machine) {
  const auto m = static_cast<double>(problem.m), n = static_cast<double>(problem.n);
  const auto k = static_cast<double>(problem.k);
  const double flops = 2.0 * m * n * k;
  const DType wire = problem.wire.planned_dtype(problem.dtype);
  const auto item = static_cast<double>(itemsize(problem.dtype));
  const auto wire_item = static_cast<double>(itemsize(wire));
  Least least = least_of(machine, flops, item * (m * k + k * n + m * n), problem.dtype);
  if (wire != problem.dtype && problem.may_narrow) {  // operands may be multiplied so
    const Least narrow = least_of(machine, flops, wire_item * (m * k + k * n) + item * m * n, wire);
    if (narrow.seconds < least.seconds) least = narrow;
  }
  const double arithmetic =
      std::min(compute_seconds(machine, flops, 0, problem.dtype),
               problem.may_narrow ? compute_seconds(machine, flops, 0, wire) : least.seconds);
  // Of C a rank makes no more alone than its share of the products. Those who make the rest of
  // them, a part w, take a elements of A and b of B with (w M N K)^2 <= a b M N: a + b >= 2 w K
  // sqrt(M N) (L. H. Loomis and H. Whitney, 1949).
  least.out = {wire_item * m * n, wanted_share(problem.c, {problem.m, problem.n}), arithmetic};
  const int root = problem.a.single_rank();
  if (root >= 0 && problem.b.single_rank() == root) {
    least.in = {wire_item * 2.0 * k * std::sqrt(m * n), 1.0, arithmetic};
    least.is_rooted = flops > 0 && (!problem.c || problem.c->single_rank() == root);
  }
  return floor_of(least, machine, problem.a.mesh().size());
}

size_t chunked_input(const Plan& plan) { return static_cast<size_t>(plan.setting("chunked")); }

bool sums_panels(int64_t panels, const Sharding& partial, const Sharding& c) {
  return panels > 1 || !(partial == c);
}

Sharding partial_sharding(const Plan& plan) {
  const Sharding& a = plan.inputs[0].sharding;
  if (a.single_rank() >= 0) return a;
  return Sharding(a.mesh(), P(Spec::Axes{"m"}, Spec::Axes{"n"}));
}

}  // namespace cuop::dist
