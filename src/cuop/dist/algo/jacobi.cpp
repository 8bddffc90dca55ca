#include <algorithm>
#include <functional>
#include <iomanip>

#include "cuop/core/interrupt.h"
#include "cuop/core/text.h"
#include "cuop/dist/agree.h"
#include "cuop/dist/algo/jacobi_sweeps.h"
#include "cuop/dist/algo/operations.h"
#include "cuop/dist/algo/poisson_internal.h"
#include "cuop/dist/exec/call.h"
#include "cuop/dist/exec/redistribute.h"
#include "cuop/dist/plan/stencil_plan.h"

namespace cuop::dist {
namespace {

/// More than of other sweeps: between two exchanges ranks look at norms, too.
constexpr int64_t kMostJacobiDepth = 2 * kMaxDepth;

Plan plan_jacobi(const JacobiOptions& options, const PlanArguments& given) {
  check_poisson("jacobi_2d", given.inputs, options);
  SweepProblem problem;
  problem.op = "jacobi_2d";
  problem.inputs = given.inputs;
  problem.is_periodic = options.boundary == Boundary::kPeriodic;
  problem.iterations = options.iterations;
  problem.flops_per_cell = 9;  // four adds, a fused scale, and the square of the update
  problem.max_depth = std::clamp<int64_t>(options.iterations, 1, kMostJacobiDepth);
  problem.is_watched = options.tolerance > 0.0;
  problem.ends_with_norms = true;
  problem.wanted = given.output;
  return plan_sweeps(problem, given.machine, given.strategy);
}

/// Batches that may wait for somebody to look at their norms while another is begun: a GPU sweeps
/// on while the host looks, and does a batch too many where the norms are small. The host itself
/// would gain nothing. The same on all ranks, as their calls have to match.
int64_t batches_ahead(const DistTensor& grid, const JacobiOptions& options, int64_t depth) {
  const bool has_several = options.tolerance > 0.0 && options.iterations > depth;
  return has_several && agree_all(grid.comm(), !grid.device().is_cpu()) ? 1 : 0;
}

/// The first sweep of the oldest batch, from 1 on, whose norm is below the tolerance; 0 for none.
/// Norms that rounding may have put on the wrong side are taken in the order of whole rows.
int64_t first_below(double tolerance, const std::vector<double>& norms, JacobiSweeps& sweeps) {
  const double slack = sweeps.norm_slack();
  for (size_t i = 0; i < norms.size(); ++i) {
    const auto number = static_cast<int64_t>(i) + 1;
    const bool is_below = norms[i] < tolerance * (1.0 + slack);
    const bool is_close = is_below && !(norms[i] < tolerance * (1.0 - slack));
    if (is_close ? sweeps.exact_norm(number) < tolerance : is_below) return number;
  }
  return 0;
}

/// Looks at the norms of the oldest batch; true when no sweep is wanted behind it. `is_last`: none
/// has been begun, nor will be.
bool look(JacobiSweeps& sweeps, const JacobiOptions& options, bool is_last, SolveInfo& info) {
  const std::vector<double> norms = sweeps.norms();
  // Without a tolerance the last sweep alone was measured.
  int64_t wanted = options.tolerance > 0.0 ? first_below(options.tolerance, norms, sweeps) : 0;
  if (wanted == 0 && !is_last) {
    sweeps.drop();
    return false;
  }
  const auto measured = static_cast<int64_t>(norms.size());
  if (wanted == 0) wanted = sweeps.count();
  info.sweeps = sweeps.first() + wanted;
  info.update_norm = sweeps.norm_slack() > 0.0
                         ? sweeps.exact_norm(wanted)
                         : norms[static_cast<size_t>(wanted - 1 - (sweeps.count() - measured))];
  sweeps.end_at(wanted);
  return true;
}

DistTensor execute_jacobi(const JacobiOptions& options, const Plan& plan,
                          const std::vector<DistTensor>& inputs, SolveInfo& info) {
  const DistTensor grid = moved_to(inputs[0], plan.inputs[0].sharding);
  const DistTensor rhs = moved_to(inputs[1], plan.inputs[1].sharding);
  const int64_t depth = plan.setting("depth");
  const int64_t ahead = batches_ahead(grid, options, depth);
  JacobiSweeps sweeps(grid, rhs, depth, plan.setting("overlap") != 0, ahead, options);
  int64_t begun = 0;
  for (bool is_done = options.iterations == 0; !is_done;) {
    check_interrupt();
    const bool is_all = begun == options.iterations;
    if (is_all || sweeps.waiting() > ahead) {
      is_done = look(sweeps, options, is_all && sweeps.waiting() == 1, info);
      continue;
    }
    const int64_t now = std::min(depth, options.iterations - begun);
    begun += now;
    const bool is_last = begun == options.iterations;
    sweeps.begin(now, options.tolerance > 0.0 ? now : is_last ? 1 : 0);
  }
  info.residual_norm = sweeps.residual_norm();
  return sweeps.grid();
}

}  // namespace

Operation jacobi_operation(const JacobiOptions& options, const std::shared_ptr<SolveInfo>& info) {
  const std::string text = cat(std::setprecision(17), "jacobi_2d dx ", options.dx, ", boundary ",
                               static_cast<int>(options.boundary), ", iterations ",
                               options.iterations, ", tol ", options.tolerance);
  return solver_operation(text, std::bind_front(plan_jacobi, options),
                          std::bind_front(execute_jacobi, options), info);
}

DistTensor jacobi_2d(const DistTensor& grid, const DistTensor& rhs, const JacobiOptions& options,
                     SolveInfo* info, const CallOptions& call) {
  return with_info(info, [&](const auto& found) {
    return run_sharded(jacobi_operation(options, found), {grid, rhs}, call);
  });
}

Tensor jacobi_2d_from_root(const CommunicatorPtr& comm, const Tensor& grid, const Tensor& rhs,
                           const JacobiOptions& options, SolveInfo* info, const CallOptions& call) {
  return with_info(info, [&](const auto& found) {
    return run_rooted(comm, jacobi_operation(options, found), {grid, rhs}, call);
  });
}

}  // namespace cuop::dist
