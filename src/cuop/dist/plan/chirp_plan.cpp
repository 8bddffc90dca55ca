#include "cuop/dist/plan/chirp_plan.h"

#include <algorithm>
#include <ranges>

#include "cuop/core/divide_up.h"
#include "cuop/core/text.h"
#include "cuop/dist/plan/map_plan.h"

namespace cuop::dist {
namespace {

/// Products with chirps, whose squares are reduced, and twiddle factors, of an element of each
/// matrix: 11 ns of a core of an AMD EPYC.
constexpr double kFactorFlops = 32, kFactorEfficiency = 0.1;

void add_factors(Plan& plan, const Machine& machine, const Placement& matrix) {
  const int64_t block = largest_block(matrix.shape, matrix.dtype, matrix.sharding);
  add_compute(plan, machine, "chirp and twiddle factors",
              kFactorFlops * static_cast<double>(block / itemsize(matrix.dtype)), 2 * block,
              matrix.dtype, kFactorEfficiency);
}

}  // namespace

ChirpSizes::ChirpSizes(FftKind of, int64_t length, int64_t given)
    : kind(of),
      n(length),
      used(std::min(given, of == FftKind::kIrfft ? length / 2 + 1 : length)),
      outputs(of == FftKind::kRfft ? length / 2 + 1 : length),
      matrix(smooth_factors(used + outputs - 1)) {}

ChirpSteps::ChirpSteps(const FftProblem& problem)
    : problem_(problem),
      result_(fft_result(problem)),
      axis_(problem.axes.at(0)),
      sizes_(problem.kind, problem.lengths.at(0), problem.x.shape[axis_]) {
  for (int dim = 0; dim < problem.x.shape.ndim(); ++dim) {
    if (dim != axis_) lines_ *= problem.x.shape[dim];
  }
}

Sharding ChirpSteps::split_dimension(int dim) const { return split_over_ranks(ranks(), 3, dim); }

Shape ChirpSteps::input_shape() const {
  return {divide_up(sizes_.used, sizes_.matrix.n2), lines_, sizes_.matrix.n2};
}

std::vector<Box> ChirpSteps::input_boxes() const {
  const int64_t row = sizes_.matrix.n2;
  std::vector<Box> boxes;
  for (const Box& block : in_rows().owner_boxes(input_shape())) {
    Box box = empty_box(problem_.x.shape.ndim());
    if (!block.empty()) {
      box = whole_box(problem_.x.shape);
      box.set_interval(axis_, clipped({row * block.low[0], row * block.high[0]}, sizes_.used));
    }
    boxes.push_back(box);
  }
  return boxes;
}

std::vector<Pass> ChirpSteps::passes() const {
  const auto [m1, m2] = sizes_.matrix;
  const DType between = complex_dtype(real_dtype(result_.dtype));
  return {{in_columns(), {0}, {m1, lines_ + 1, m2}, between},
          {in_rows(), {2}, {m1, lines_, m2}, between},
          {in_columns(), {0}, {divide_up(sizes_.outputs, m2), lines_, m2}, result_.dtype}};
}

Sharding ChirpSteps::output_sharding() const {
  const int ndim = result_.shape.ndim();
  const auto is_split = [&](int dim) { return !problem_.wanted->spec().axes(dim).empty(); };
  if (problem_.wanted && std::ranges::none_of(std::views::iota(0, ndim), is_split)) {
    return *problem_.wanted;
  }
  const int64_t row = sizes_.matrix.n2;
  std::vector<int64_t> sizes;
  for (int rank = 0; rank < ranks(); ++rank) {
    const Interval rows = split_evenly({0, divide_up(sizes_.outputs, row)}, ranks(), rank);
    sizes.push_back(clipped({row * rows.low, row * rows.high}, sizes_.outputs).length());
  }
  const Sharding even = split_over_ranks(ranks(), ndim, axis_);
  const Sharding in_whole_rows = even.with_blocks(axis_, sizes);
  return same_owners(even, in_whole_rows, result_.shape) ? even : in_whole_rows;
}

std::vector<Need> ChirpSteps::needs_for_output(const Sharding& output) const {
  const int64_t row = sizes_.matrix.n2;
  std::vector<Need> needs;
  for (int rank = 0; rank < ranks(); ++rank) {
    const Box made = output.owner_box(result_.shape, rank);
    Box box = empty_box(3);
    if (!made.empty()) {
      box = whole_box({1, lines_, row});
      box.set_interval(0, {made.low[axis_] / row, divide_up(made.high[axis_], row)});
    }
    needs.push_back({rank, box});
  }
  return needs;
}

Plan plan_chirp(const FftProblem& problem, const Machine& machine) {
  const ChirpSteps steps(problem);
  const auto [m1, m2] = steps.sizes().matrix;
  const Placement& x = problem.x;
  Plan plan{problem.op, kChirp, cat(m1, " x ", m2), x.sharding.mesh().size()};
  plan.inputs = {x};
  plan.settings = {{"n1", m1}, {"n2", m2}};
  Placement here{x.name, steps.input_shape(), x.dtype, steps.in_rows()};
  add_whole_rows(plan, machine, x, steps.input_boxes());
  const std::vector<Pass> passes = steps.passes();
  for (const Pass& pass : passes) {
    add_reordering(plan, machine, {here.name, here.shape, here.dtype, pass.at});
    here = add_passes(plan, machine, here, {pass});
    add_factors(plan, machine, here);
  }
  // Rows are transformed back too.
  const Placement products{"", passes[1].shape, passes[1].dtype, passes[1].at};
  const int64_t block = largest_block(products.shape, products.dtype, products.sharding);
  add_compute(plan, machine, "rows back",
              transform_flops(static_cast<double>(block / itemsize(products.dtype)), m2), 2 * block,
              products.dtype, fft_efficiency(machine, m2 * itemsize(products.dtype)));
  const Sharding made = steps.output_sharding();
  add_line_of_matrix(plan, machine, problem, here, made, steps.needs_for_output(made));
  return plan;
}

}  // namespace cuop::dist
