#include "cuop/dist/algo/poisson.h"

#include <functional>
#include <iomanip>

#include "cuop/core/enum_names.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/algo/poisson_internal.h"
#include "cuop/dist/algo/row_solvers.h"
#include "cuop/dist/exec/call.h"
#include "cuop/dist/exec/exchange.h"
#include "cuop/dist/plan/poisson_plan.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"

namespace cuop::dist {
namespace {

constexpr const char* kBoundaries[] = {"zero", "periodic", "dirichlet", "neumann"};
constexpr const char* kMethods[] = {"jacobi", "rb-sor", "cg", "multigrid", "direct"};

AxisEnds ends_of(PoissonBoundary boundary) {
  if (boundary == PoissonBoundary::kPeriodic) return AxisEnds::kPeriodic;
  if (boundary == PoissonBoundary::kNeumann) return AxisEnds::kZeroFlux;
  return AxisEnds::kZero;
}

RowSolver solver_of(PoissonMethod method) {
  switch (method) {
    case PoissonMethod::kRedBlackSor:
      return RowSolver::kRedBlackSor;
    case PoissonMethod::kCg:
      return RowSolver::kCg;
    case PoissonMethod::kMultigrid:
      return RowSolver::kMultigrid;
    default:
      return RowSolver::kJacobi;
  }
}

JacobiOptions sweeping(const PoissonOptions& options) {
  const bool is_periodic = options.boundary == PoissonBoundary::kPeriodic;
  return {options.dx, is_periodic ? Boundary::kPeriodic : Boundary::kZero, options.iterations,
          options.tolerance};
}

Plan plan_solver(const PoissonOptions& options, const PlanArguments& given) {
  check_poisson(kSolvePoisson, given.inputs, sweeping(options));
  return plan_row_solver({kSolvePoisson, given.inputs, solver_of(options.method),
                          ends_of(options.boundary), options.iterations, given.output},
                         given.machine, given.strategy);
}

/// The equation of one rank's rows, with the solver that it is made for.
class RowSolve {
 public:
  RowSolve(const Plan& plan, const DistTensor& grid, const DistTensor& rhs,
           const PoissonOptions& options, SolveInfo& info)
      : options_(options),
        info_(info),
        comm_(grid.comm()),
        op_{grid.shape(0), grid.shape(1), 1.0, 1.0, ends_of(options.boundary)},
        blocks_(grid.sharding().owner_boxes(grid.shape())),
        local_(rows_of(grid)) {
    const Device device = grid.device();
    const bool is_multigrid = options.method == PoissonMethod::kMultigrid;
    if (is_multigrid) {
      multigrid_.emplace(comm_, op_, blocks_, plan.setting("shared_cells"), grid.dtype(), device);
    } else {
      const bool is_sor = options.method == PoissonMethod::kRedBlackSor;
      const int sweeps = is_sor ? kSorSweeps : 0;
      const auto passes = static_cast<int64_t>(passes_of(op_, sweeps).size());
      single_.emplace(comm_, without_loops(op_), blocks_, passes, grid.dtype(), device);
    }
    if (leaves_mean_open()) info.dropped_mean = mean(rows_of(rhs));
    // A u = b for the Laplacian with its sign turned.
    const Tensor b = equation().b();
    multiply(subtract(rows_of(rhs), info.dropped_mean), -options.dx * options.dx, &b);
    const Tensor u = equation().u();
    copy_into(u, local_);
    equation().fetch_rhs();
    equation().fetch_halo();
  }

  Tensor solved() {
    const Patience patience{options_.iterations, options_.tolerance};
    switch (options_.method) {
      case PoissonMethod::kMultigrid:
        solve_by_multigrid(comm_, *multigrid_, patience, info_);
        break;
      case PoissonMethod::kRedBlackSor:
        solve_by_sor(comm_, *single_, patience, info_);
        break;
      case PoissonMethod::kCg:
        solve_by_cg(comm_, *single_, patience, info_);
        break;
      default:
        solve_by_jacobi(comm_, *single_, patience, info_);
        break;
    }
    const Tensor u = equation().u();
    return leaves_mean_open() ? add(u, mean(local_) - mean(u)) : clone(u);
  }

 private:
  /// Of all columns where they are none, too.
  static Tensor rows_of(const DistTensor& x) {
    return x.box().empty() ? empty({0, x.shape(1)}, x.dtype(), x.device()) : contiguous(x.local());
  }
  RowEquation& equation() { return multigrid_ ? multigrid_->finest() : *single_; }
  bool leaves_mean_open() const { return op_.ends != AxisEnds::kZero; }
  double mean(const Tensor& x) const {
    return sum_of_grid(comm_, x, blocks_) / static_cast<double>(op_.height * op_.width);
  }

  const PoissonOptions& options_;
  SolveInfo& info_;
  Communicator& comm_;
  FivePoint op_;
  std::vector<Box> blocks_;
  Tensor local_;
  std::optional<Multigrid> multigrid_;
  std::optional<RowEquation> single_;
};

DistTensor execute_solver(const PoissonOptions& options, const Plan& plan,
                          const std::vector<DistTensor>& inputs, SolveInfo& info) {
  const Sharding& rows = plan.inputs[0].sharding;
  const DistTensor grid = moved_to(inputs[0], rows), rhs = moved_to(inputs[1], rows);
  if (grid.size() == 0) return grid;
  const Tensor u = RowSolve(plan, grid, rhs, options, info).solved();
  const DistTensor solution(grid.comm_ptr(), rows, grid.shape(), grid.dtype(),
                            grid.box().empty() ? Tensor() : u, grid.device());
  info.residual_norm = PoissonNorms(rhs, options.dx, ends_of(options.boundary)).residual(solution);
  return solution;
}

Operation row_solver(const PoissonOptions& options, const std::shared_ptr<SolveInfo>& info) {
  const std::string text =
      cat(std::setprecision(17), kSolvePoisson, " by ", kMethods[static_cast<int>(options.method)],
          ", dx ", options.dx, ", boundary ", kBoundaries[static_cast<int>(options.boundary)],
          ", iterations ", options.iterations, ", tol ", options.tolerance);
  return solver_operation(text, std::bind_front(plan_solver, options),
                          std::bind_front(execute_solver, options), info);
}

bool is_direct(const PoissonOptions& options) { return options.method == PoissonMethod::kDirect; }
/// jacobi_2d knows no edges without flux.
bool is_swept(const PoissonOptions& options) {
  return options.method == PoissonMethod::kJacobi && options.boundary != PoissonBoundary::kNeumann;
}

Operation operation(const PoissonOptions& options, const std::shared_ptr<SolveInfo>& info) {
  if (is_direct(options))
    return direct_solver(kSolvePoisson, options.dx, ends_of(options.boundary), info);
  return row_solver(options, info);
}

PoissonOptions within_frame(PoissonOptions options) {
  options.boundary = PoissonBoundary::kZero;
  return options;
}

}  // namespace

PoissonBoundary parse_poisson_boundary(std::string_view text, const char* who) {
  return parse_name<PoissonBoundary>(cat(who, ": boundary"), kBoundaries, text);
}
PoissonMethod parse_poisson_method(std::string_view text, const char* who) {
  return parse_name<PoissonMethod>(cat(who, ": method"), kMethods, text);
}

DistTensor solve_poisson_2d(const DistTensor& grid, const DistTensor& rhs,
                            const PoissonOptions& options, SolveInfo* info,
                            const CallOptions& call) {
  if (options.boundary == PoissonBoundary::kDirichlet) {
    return solved_within_frame(
        grid, rhs, options.dx, call.output, [&](const DistTensor& inner, const DistTensor& f) {
          CallOptions without_output = call;
          without_output.output.reset();
          return solve_poisson_2d(inner, f, within_frame(options), info, without_output);
        });
  }
  if (is_swept(options)) return jacobi_2d(grid, rhs, sweeping(options), info, call);
  return with_info(info, [&](const auto& found) {
    return run_sharded(operation(options, found), {grid, rhs}, call);
  });
}

Tensor solve_poisson_2d_from_root(const CommunicatorPtr& comm, const Tensor& grid,
                                  const Tensor& rhs, const PoissonOptions& options, SolveInfo* info,
                                  const CallOptions& call) {
  if (options.boundary == PoissonBoundary::kDirichlet) {
    return solved_within_frame(
        comm, grid, rhs, options.dx, [&](const Tensor& inner, const Tensor& f) {
          return solve_poisson_2d_from_root(comm, inner, f, within_frame(options), info, call);
        });
  }
  if (is_swept(options)) {
    return jacobi_2d_from_root(comm, grid, rhs, sweeping(options), info, call);
  }
  return with_info(info, [&](const auto& found) {
    return run_rooted(comm, operation(options, found), {grid, rhs}, call);
  });
}

}  // namespace cuop::dist
