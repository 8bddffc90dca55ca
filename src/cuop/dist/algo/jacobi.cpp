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
#include "cuop/dist/exec/exchange.h"
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

/// How somebody looks at norms while others sweep.
struct Watch {
  /// Batches that may wait to be looked at while another is begun: a GPU sweeps on while the host
  /// looks, and does a batch too many where the norms are small. The host itself would gain
  /// nothing.
  int64_t ahead = 0;
  bool is_sampled = false;  ///< batches measure their last sweep alone
};

/// The same on all ranks, as their calls have to match.
Watch watch_of(const DistTensor& grid, const JacobiOptions& options, int64_t depth) {
  const bool has_several = options.iterations > depth;
  const bool is_large = has_many_cells(element_count(grid.shape()));
  if (options.tolerance <= 0.0 || !(has_several || is_large)) return {};
  const bool is_on_gpus = agree_all(grid.comm(), !grid.device().is_cpu());
  return {is_on_gpus && has_several ? 1 : 0, is_on_gpus && is_large};
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

enum class Sight : uint8_t { kGoOn, kDone, kMeasureAll };

/// Looks at the norms of the oldest batch. kDone: no sweep is wanted behind it. kMeasureAll: one of
/// its sweeps may be the wanted one, and its last alone was measured. `is_last`: none has been
/// begun since, nor will be.
Sight look(JacobiSweeps& sweeps, const JacobiOptions& options, bool is_last, SolveInfo& info) {
  const std::vector<double> norms = sweeps.norms();
  const auto measured = static_cast<int64_t>(norms.size());
  int64_t wanted = 0;
  if (options.tolerance > 0.0 && measured < sweeps.count()) {
    if (!is_far_above(norms.back(), options.tolerance)) return Sight::kMeasureAll;
  } else if (options.tolerance > 0.0) {
    wanted = first_below(options.tolerance, norms, sweeps);
  }
  if (wanted == 0 && !is_last) {
    sweeps.drop();
    return Sight::kGoOn;
  }
  if (wanted == 0) wanted = sweeps.count();
  info.sweeps = sweeps.first() + wanted;
  info.update_norm = sweeps.norm_slack() > 0.0
                         ? sweeps.exact_norm(wanted)
                         : norms[static_cast<size_t>(wanted - 1 - (sweeps.count() - measured))];
  sweeps.end_at(wanted);
  return Sight::kDone;
}

DistTensor execute_jacobi(const JacobiOptions& options, const Plan& plan,
                          const std::vector<DistTensor>& inputs, SolveInfo& info) {
  const DistTensor grid = moved_to(inputs[0], plan.inputs[0].sharding);
  const DistTensor rhs = moved_to(inputs[1], plan.inputs[1].sharding);
  const int64_t depth = plan.setting("depth");
  const auto [ahead, is_sampled] = watch_of(grid, options, depth);
  JacobiSweeps sweeps(grid, rhs, depth, plan.setting("overlap") != 0, ahead, options);
  bool is_measured = options.tolerance > 0.0 && !is_sampled;  // every sweep
  int64_t begun = 0;
  for (bool is_done = options.iterations == 0; !is_done;) {
    check_interrupt();
    const bool is_all = begun == options.iterations;
    if (is_all || sweeps.waiting() > ahead) {
      const Sight seen = look(sweeps, options, is_all && sweeps.waiting() == 1, info);
      is_done = seen == Sight::kDone;
      if (seen == Sight::kMeasureAll) {
        begun = sweeps.rewind();
        is_measured = true;
      }
      continue;
    }
    const int64_t now = std::min(depth, options.iterations - begun);
    begun += now;
    const bool is_last = begun == options.iterations;
    sweeps.begin(now, is_measured ? now : is_sampled || is_last ? 1 : 0);
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
