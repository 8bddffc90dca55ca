// The five-point Laplacian is diagonal in sine modes (zero ends), Fourier modes (periodic) and
// cosine modes of type II (ends without flux): R. W. Hockney, J. ACM 12 (1965); P. N. Swarztrauber,
// SIAM Review 19 (1977). On the host the rows alone are transformed: what is left of each mode is a
// recurrence along a column, which takes less time than transforms there and back. Everything is
// computed where the parts lie.
#include <algorithm>
#include <cmath>
#include <functional>
#include <iomanip>
#include <numbers>

#include "cuop/core/text.h"
#include "cuop/dist/algo/poisson_internal.h"
#include "cuop/dist/algo/row_equation.h"
#include "cuop/dist/exec/call.h"
#include "cuop/dist/exec/exchange.h"
#include "cuop/dist/exec/passes.h"
#include "cuop/dist/plan/map_plan.h"
#include "cuop/dist/plan/pass_plan.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/fft/fft.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/poisson/column_solver.h"

namespace cuop::dist {
namespace {

/// Eigenvalues number `modes` of the second difference 2 u[i] - u[i-1] - u[i+1] on n cells.
std::vector<double> eigenvalues(Interval modes, int64_t n, AxisEnds ends) {
  std::vector<double> values;
  const bool is_zero = ends == AxisEnds::kZero;
  const auto half_turns = static_cast<double>(ends == AxisEnds::kPeriodic ? n
                                              : is_zero                   ? 2 * (n + 1)
                                                                          : 2 * n);
  for (int64_t mode = modes.low; mode < modes.high; ++mode) {
    const double angle =
        std::numbers::pi * static_cast<double>(is_zero ? mode + 1 : mode) / half_turns;
    const double sine = std::sin(angle);
    values.push_back(4.0 * sine * sine);
  }
  return values;
}

/// By what an axis there and back multiplies.
double there_and_back(int64_t n, AxisEnds ends) {
  if (ends == AxisEnds::kPeriodic) return 1.0;
  return 2.0 * static_cast<double>(ends == AxisEnds::kZero ? n + 1 : n);
}

/// Divides the coefficients of `box` of the grid's modes in place by the Laplacian's eigenvalues.
/// The constant's, which has none but between zero ends, becomes `constant`.
void divide_by_laplacian(const Tensor& modes, const Box& box, const Shape& grid, double dx,
                         AxisEnds ends, double constant) {
  const double scale = there_and_back(grid[0], ends) * there_and_back(grid[1], ends) / (dx * dx);
  const auto along = [&](int axis) {
    std::vector<double> values = eigenvalues(box.interval(axis), grid[axis], ends);
    for (double& each : values) each *= -scale;
    Shape shape{1, 1};
    shape[axis] = box.interval(axis).length();
    const Tensor all = from_values<double>(shape, std::span<const double>(values));
    return to_device(cast(all, real_dtype(modes.dtype())), modes.device());
  };
  divide(modes, add(along(0), along(1)), &modes);
  if (ends == AxisEnds::kZero || box.low[0] > 0 || box.low[1] > 0) return;
  fill(slice(slice(modes, 0, 0, 1), 1, 0, 1), constant);
}

/// The Fourier ones return to real numbers when all is done.
Tensor transform(const Tensor& x, int axis, bool is_there, AxisEnds ends, const Tensor* out) {
  if (ends == AxisEnds::kZero) return cuop::dst1(x, axis, out);
  if (ends == AxisEnds::kZeroFlux) return (is_there ? cuop::dct2 : cuop::dct3)(x, axis, out);
  return (is_there ? cuop::fft : cuop::ifft)(x, {}, axis, FftNorm::kBackward, out);
}

/// What a solution is made of: the right-hand side's rows transformed, each column of modes solved,
/// the rows transformed back.
class DirectPasses {
 public:
  DirectPasses(const Shape& grid, double dx, AxisEnds ends, double constant)
      : grid_(grid), dx_(dx), ends_(ends), constant_(constant) {}

  /// Of five steps there and back: rows, columns, division, columns, rows.
  void transform_all(const Tensor& part, const RankPass& pass) const {
    constexpr size_t kPassesThere = 2;
    transform(part, pass.axes.front(), pass.number < kPassesThere, ends_, &pass.into);
    if (pass.number + 1 == kPassesThere) divide(pass.into, pass.box);
  }

  void solve_columns(const Tensor& part, const RankPass& pass) const {
    if (pass.number != 1) {
      transform(part, 1, pass.number == 0, ends_, &pass.into);
    } else if (pass.into.device().is_cpu()) {
      const kernels::ColumnEquations equations{ends_, dx_ * dx_ / there_and_back(grid_[1], ends_),
                                               eigenvalues(pass.box.interval(1), grid_[1], ends_),
                                               constant_};
      kernels::solve_columns(equations, part, pass.into);
    } else {  // planned with figures of a host
      const Tensor modes = transform(part, 0, true, ends_, nullptr);
      divide(modes, pass.box);
      transform(modes, 0, false, ends_, &pass.into);
    }
  }

 private:
  void divide(const Tensor& modes, const Box& box) const {
    divide_by_laplacian(modes, box, grid_, dx_, ends_, constant_);
  }

  const Shape& grid_;
  double dx_;
  AxisEnds ends_;
  double constant_;
};

constexpr const char* kRecurrence = "recurrence";

double mean_of(const DistTensor& x) {
  const double sum = sum_of_grid(x.comm(), x.local(), x.sharding().owner_boxes(x.shape()));
  return sum / static_cast<double>(std::max<int64_t>(1, x.size()));
}

DistTensor execute_direct(double dx, AxisEnds ends, const Plan& plan,
                          const std::vector<DistTensor>& inputs, SolveInfo& info) {
  const Sharding& slices = plan.inputs[0].sharding;
  const DistTensor rhs = moved_to(inputs[1], slices);
  const Shape& shape = rhs.shape();
  double constant = 0.0;
  if (ends != AxisEnds::kZero) {
    constant = mean_of(moved_to(inputs[0], slices));
    info.dropped_mean = mean_of(rhs);
    // The way back divides by the number of cells.
    if (ends == AxisEnds::kPeriodic) constant *= static_cast<double>(rhs.size());
  }
  const DirectPasses passes(shape, dx, ends, constant);
  const bool has_recurrence = plan.setting(kRecurrence) != 0;
  const DistTensor x = follow_passes(plan, rhs, [&](const Tensor& part, const RankPass& pass) {
    has_recurrence ? passes.solve_columns(part, pass) : passes.transform_all(part, pass);
  });
  const bool is_complex = ends == AxisEnds::kPeriodic;
  const Tensor u = is_complex ? clone(select(as_real(x.local()), -1, 0)) : x.local();
  DistTensor solution(x.comm_ptr(), slices, shape, rhs.dtype(), u, rhs.device());
  info.residual_norm = PoissonNorms(rhs, dx, ends).residual(solution);
  return solution;
}

/// One axis there and back, of which nothing has to be brought but the right-hand side and the
/// solution.
Floor direct_floor(const std::vector<Placement>& inputs, DType working,
                   const std::optional<Sharding>& output, const Machine& machine) {
  const Placement& rhs = inputs[1];
  const auto cells = static_cast<double>(element_count(rhs.shape));
  const double flops = 2.0 * transform_flops(cells, std::min(rhs.shape[0], rhs.shape[1]));
  const double bytes = cells * static_cast<double>(itemsize(rhs.dtype));
  Least least = least_of(machine, flops, 2.0 * bytes, working, best_fft_efficiency(machine));
  const double arithmetic =
      least_of(machine, flops, 0, working, best_fft_efficiency(machine)).seconds;
  least.in = {bytes, largest_share(rhs.sharding, rhs.shape), arithmetic};
  least.out = {bytes, wanted_share(output, rhs.shape), arithmetic};
  least.is_rooted = is_rooted({rhs}, output);
  return floor_of(least, machine, rhs.sharding.mesh().size());
}

/// A recurrence takes the place of two passes along columns.
std::vector<Plan> direct_plans(PassProblem problem, DType working, const Machine& machine,
                               bool has_recurrence) {
  const Placement& rhs = problem.x;
  const auto add = [&](const char* name, const Sharding& rows, const Sharding& columns) {
    const Pass along_rows{rows, {1}, rhs.shape, working};
    const Pass along_columns{columns, {0}, rhs.shape, working, has_recurrence};
    PassChoice choice{name, "", {along_rows, along_columns}};
    if (!has_recurrence) choice.passes.push_back(along_columns);
    choice.passes.push_back(along_rows);
    problem.choices.push_back(std::move(choice));
  };
  if (rhs.sharding.single_rank() >= 0) add("root", rhs.sharding, rhs.sharding);
  const Mesh line = Mesh::line(rhs.sharding.mesh().size());
  add("pencil", Sharding(line, split_dim(2, 0)), Sharding(line, split_dim(2, 1)));
  std::vector<Plan> plans = pass_plans(problem, machine);
  for (Plan& plan : plans) plan.settings[kRecurrence] = has_recurrence;
  return plans;
}

Plan plan_direct(const std::string& who, double dx, AxisEnds ends, const PlanArguments& given) {
  const auto& [inputs, output, machine, strategy] = given;
  check_poisson(who, inputs, {.dx = dx});
  const Placement& rhs = inputs[1];
  const DType working = ends == AxisEnds::kPeriodic ? complex_dtype(rhs.dtype) : rhs.dtype;
  const auto fits = [&](const Plan& plan) { return plan.memory_per_rank <= machine.memory; };
  const PassProblem problem{who, rhs, {}, rhs.dtype, output};
  const bool has_recurrence = ends != AxisEnds::kPeriodic && machine.recurrence_speed > 0;
  std::vector<Plan> plans = direct_plans(problem, working, machine, has_recurrence);
  if (has_recurrence && std::ranges::none_of(plans, fits)) {
    plans = direct_plans(problem, working, machine, false);
  }
  return choose(std::move(plans), machine, strategy,
                direct_floor(inputs, working, output, machine));
}

}  // namespace

Operation direct_solver(const std::string& who, double dx, AxisEnds ends,
                        const std::shared_ptr<SolveInfo>& info) {
  const std::string text =
      cat(std::setprecision(17), who, " dx ", dx, ", ends ", static_cast<int>(ends));
  return solver_operation(text, std::bind_front(plan_direct, who, dx, ends),
                          std::bind_front(execute_direct, dx, ends), info);
}

DistTensor poisson_2d(const DistTensor& grid, const DistTensor& rhs, const JacobiOptions& options,
                      SolveInfo* info, const CallOptions& call) {
  return with_info(info, [&](const auto& found) {
    return run_sharded(direct_solver("poisson_2d", options.dx, ends_of(options.boundary), found),
                       {grid, rhs}, call);
  });
}

Tensor poisson_2d_from_root(const CommunicatorPtr& comm, const Tensor& grid, const Tensor& rhs,
                            const JacobiOptions& options, SolveInfo* info,
                            const CallOptions& call) {
  return with_info(info, [&](const auto& found) {
    return run_rooted(comm,
                      direct_solver("poisson_2d", options.dx, ends_of(options.boundary), found),
                      {grid, rhs}, call);
  });
}

}  // namespace cuop::dist
