#include "cuop/dist/plan/four_step_plan.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "cuop/core/divide_up.h"
#include "cuop/core/text.h"
#include "cuop/dist/plan/map_plan.h"

namespace cuop::dist {
namespace {

/// The tensor under this sharding with a dimension more, which is not split, behind `dim`.
Sharding with_dimension(const Sharding& sharding, int ndim, int dim) {
  if (sharding.single_rank() >= 0) return sharding;
  std::vector<Spec::Axes> dims;
  for (int i = 0; i < ndim; ++i) {
    dims.push_back(sharding.spec().axes(i));
    if (i == dim) dims.emplace_back();
  }
  Sharding result(sharding.mesh(), Spec(std::move(dims)));
  for (const auto& [at, sizes] : sharding.blocks()) {
    if (at != dim) result = result.with_blocks(at > dim ? at + 1 : at, sizes);
  }
  return result;
}

/// Multiplications by roots of unity, which are products of two each, in place.
constexpr double kTwiddleFlops = 12, kTwiddleEfficiency = 0.1;

}  // namespace

std::optional<Factors> four_step_factors(int64_t n, int ranks) {
  // What the busiest rank has of all columns and of all rows, times the ranks.
  const auto shared = [&](int64_t n1, int64_t n2) {
    return static_cast<double>(round_up(n2, int64_t{ranks}) * n1 +
                               round_up(n1, int64_t{ranks}) * n2);
  };
  constexpr double kTolerance = 1.05;  // near factors are worth so much unevenness
  std::optional<Factors> best;
  double least = 0;
  for (int64_t low = static_cast<int64_t>(std::sqrt(static_cast<double>(n))) + 1; low > 1; --low) {
    const int64_t high = n / low;
    if (low * high != n || high < low) continue;
    const double cost = shared(low, high);
    if (best && cost * kTolerance >= least) continue;
    best = Factors{low, high};
    least = cost;
  }
  return best;
}

Factors smooth_factors(int64_t least) {
  const auto root = static_cast<int64_t>(std::sqrt(static_cast<double>(least)));
  std::vector<int64_t> smooth;
  const int64_t most = 8 * root + 8;
  for (int64_t sevens = 1; sevens <= most; sevens *= 7) {
    for (int64_t fives = sevens; fives <= most; fives *= 5) {
      for (int64_t threes = fives; threes <= most; threes *= 3) {
        for (int64_t twos = threes; twos <= most; twos *= 2) smooth.push_back(twos);
      }
    }
  }
  std::sort(smooth.begin(), smooth.end());
  const auto up = [&](int64_t n) { return *std::lower_bound(smooth.begin(), smooth.end(), n); };
  constexpr double kTolerance = 1.03;  // a near factor is worth so many more elements
  Factors best{up(root + 1), up(root + 1)};
  for (auto n2 = std::upper_bound(smooth.begin(), smooth.end(), root + 1); n2 != smooth.begin();) {
    --n2;
    if (2 * *n2 <= root) break;
    const int64_t n1 = up(divide_up(least, *n2));
    const double size = static_cast<double>(n1) * static_cast<double>(*n2);
    const double known = static_cast<double>(best.n1) * static_cast<double>(best.n2);
    if (n1 >= *n2 && size * kTolerance < known) best = {n1, *n2};
  }
  return best;
}

FourStep::FourStep(const FftProblem& problem, Factors factors)
    : problem_(problem),
      factors_(factors),
      result_(fft_result(problem)),
      axis_(problem.axes.at(0)),
      given_(std::min(problem.x.shape[axis_],
                      is_to_real() ? problem.lengths[0] / 2 + 1 : problem.lengths[0])) {}

Shape FourStep::matrix(int64_t rows, int64_t columns) const {
  Shape shape;
  for (int i = 0; i < problem_.x.shape.ndim(); ++i) {
    shape.push_back(i == axis_ ? rows : problem_.x.shape[i]);
    if (i == axis_) shape.push_back(columns);
  }
  return shape;
}

Sharding FourStep::in_rows() const {
  return split_over_ranks(ranks(), problem_.x.shape.ndim() + 1, axis_);
}
Sharding FourStep::in_columns() const {
  return split_over_ranks(ranks(), problem_.x.shape.ndim() + 1, axis_ + 1);
}

Shape FourStep::input_shape() const {
  return is_to_real() ? matrix(n2() / 2 + 1, n1()) : time_shape();
}

Sharding FourStep::input_sharding() const {
  return with_dimension(problem_.x.sharding, problem_.x.shape.ndim(), axis_);
}

std::vector<Box> FourStep::input_boxes() const {
  const Shape shape = input_shape();
  const int64_t row = shape[axis_ + 1];
  std::vector<Box> boxes;
  for (const Box& block : input_sharding().owner_boxes(shape)) {
    Box box = empty_box(problem_.x.shape.ndim());
    for (int i = 0; i < box.ndim() && !block.empty(); ++i) {
      box.set_interval(i, block.interval(i > axis_ ? i + 1 : i));
    }
    box.set_interval(axis_, clipped({row * box.low[axis_], row * box.high[axis_]}, given_));
    boxes.push_back(box);
  }
  return boxes;
}

Sharding FourStep::output_sharding() const {
  const auto& wanted = problem_.wanted;
  if (wanted && wanted->spec().axes(axis_).empty()) return *wanted;
  const Sharding even = split_over_ranks(ranks(), result_.shape.ndim(), axis_);
  const int64_t length = result_.shape[axis_];
  const int64_t row = output_row();
  std::vector<int64_t> sizes;
  for (int rank = 0; rank < ranks(); ++rank) {
    const Interval rows = split_evenly({0, divide_up(length, row)}, ranks(), rank);
    sizes.push_back(std::min(row * rows.high, length) - std::min(row * rows.low, length));
  }
  const Sharding in_whole_rows = even.with_blocks(axis_, sizes);
  return same_owners(even, in_whole_rows, result_.shape) ? even : in_whole_rows;
}

Box FourStep::expanded(const Box& box, Interval rows, Interval columns) const {
  Box result = empty_box(box.ndim() + 1);
  for (int i = 0; i < box.ndim(); ++i) {
    result.set_interval(i > axis_ ? i + 1 : i, box.interval(i));
  }
  result.set_interval(axis_, rows);
  result.set_interval(axis_ + 1, columns);
  return result;
}

std::vector<Need> FourStep::needs_for_spectrum() const {
  std::vector<Need> needs;
  const Shape shape = spectrum_shape();
  for (int rank = 0; rank < ranks(); ++rank) {
    const Box rows = in_rows().owner_box(shape, rank);
    const Interval own = rows.interval(axis_);
    const int64_t first = std::max<int64_t>(own.low, 1);  // row 0 mirrors itself
    Box direct = rows;
    direct.set_interval(axis_, {0, n2() / 2 + 1});
    direct.set_interval(axis_ + 1, own);
    Box mirrored = rows;
    mirrored.set_interval(axis_, {0, n2() / 2});
    mirrored.set_interval(axis_ + 1, {n1() - own.high + 1, n1() - first + 1});
    needs.push_back({rank, direct});
    needs.push_back({rank, own.high > first ? mirrored : empty_box(shape.ndim())});
  }
  return needs;
}

std::vector<Need> FourStep::needs_for_output(const Sharding& output) const {
  std::vector<Need> needs;
  for (int rank = 0; rank < ranks(); ++rank) {
    const Box box = output.owner_box(result_.shape, rank);
    Box direct = empty_box(box.ndim() + 1), mirrored = direct;
    if (!box.empty()) {
      const Interval rows{box.low[axis_] / output_row(), divide_up(box.high[axis_], output_row())};
      if (is_to_real()) {
        direct = expanded(box, rows, {0, n2()});
      } else {
        direct = expanded(box, {0, kept()}, rows);
        mirrored = expanded(box, {1, n1() - kept() + 1}, {n2() - rows.high, n2() - rows.low});
      }
    }
    needs.push_back({rank, direct});
    needs.push_back({rank, mirrored});
  }
  return needs;
}

std::vector<Pass> FourStep::passes() const {
  const DType between = complex_dtype(real_dtype(result_.dtype));
  const Pass columns{
      in_columns(), {axis_}, is_to_real() ? time_shape() : spectrum_shape(), result_.dtype};
  const Pass rows{in_rows(), {axis_ + 1}, spectrum_shape(), between};
  return is_to_real() ? std::vector{rows, columns} : std::vector{columns, rows};
}

void add_whole_rows(Plan& plan, const Machine& machine, const Placement& x,
                    const std::vector<Box>& rows) {
  const std::vector<Box> owners = x.sharding.owner_boxes(x.shape);
  if (owners == rows) return;
  add_move(plan, machine, cat(x.name, ' ', x.shape, ": ", x.sharding, " -> whole rows"), owners,
           needs_of(rows), x.dtype);
}

void add_line_of_matrix(Plan& plan, const Machine& machine, const FftProblem& problem,
                        const Placement& matrix, const Sharding& sharding,
                        const std::vector<Need>& needs) {
  const Placement result = fft_result(problem);
  const Placement made{"result", result.shape, result.dtype, sharding};
  add_move(plan, machine, cat("result ", made.shape, " -> ", made.sharding),
           matrix.sharding.owner_boxes(matrix.shape), needs, made.dtype);
  add_reordering(plan, machine, made);
  // Where that makes something whole the caller wants it so.
  for (PlanStep& step : plan.steps) step.whole_on = 0;
  const Placement& x = problem.x;
  plan.memory_per_rank += largest_block(x.shape, x.dtype, x.sharding) +
                          largest_block(made.shape, made.dtype, made.sharding);
  add_output(plan, machine, made, problem.wanted);
}

Plan plan_four_step(const FftProblem& problem, Factors factors, const Machine& machine) {
  const FourStep steps(problem, factors);
  const Placement& x = problem.x;
  Plan plan{problem.op, kFourStep, cat(factors.n1, " x ", factors.n2), x.sharding.mesh().size()};
  plan.inputs = {x};
  plan.settings = {{"n1", factors.n1}, {"n2", factors.n2}};
  Placement here{x.name, steps.input_shape(), x.dtype, steps.input_sharding()};
  add_whole_rows(plan, machine, x, steps.input_boxes());
  if (steps.is_to_real()) {
    add_move(plan, machine, cat("half a spectrum ", here.shape, " -> ", steps.in_rows()),
             here.sharding.owner_boxes(here.shape), steps.needs_for_spectrum(), here.dtype);
    here = {x.name, steps.spectrum_shape(), here.dtype, steps.in_rows()};
  }
  const std::vector<Pass> passes = steps.passes();
  add_reordering(plan, machine, {here.name, here.shape, here.dtype, passes[0].at});
  here = add_passes(plan, machine, here, {passes[0]});
  const int64_t block = largest_block(here.shape, here.dtype, here.sharding);
  add_compute(plan, machine, "twiddle factors",
              kTwiddleFlops * static_cast<double>(block / itemsize(here.dtype)), 2 * block,
              here.dtype, kTwiddleEfficiency);
  add_reordering(plan, machine, {here.name, here.shape, here.dtype, passes[1].at});
  here = add_passes(plan, machine, here, {passes[1]});
  const Sharding made = steps.output_sharding();
  add_line_of_matrix(plan, machine, problem, here, made, steps.needs_for_output(made));
  return plan;
}

}  // namespace cuop::dist
