#include <functional>
#include <iomanip>

#include "cuop/core/interrupt.h"
#include "cuop/core/text.h"
#include "cuop/dist/algo/poisson_internal.h"
#include "cuop/dist/exec/call.h"
#include "cuop/dist/exec/redistribute.h"
#include "cuop/dist/exec/sweep.h"

namespace cuop::dist {
namespace {

Plan plan_jacobi(const JacobiOptions& options, const std::vector<Placement>& inputs,
                 const std::optional<Sharding>& output, const Machine& machine,
                 const std::string& strategy) {
  check_poisson("jacobi_2d", inputs, options);
  SweepProblem problem;
  problem.op = "jacobi_2d";
  problem.inputs = inputs;
  problem.is_periodic = options.boundary == Boundary::kPeriodic;
  problem.iterations = options.iterations;
  problem.flops_per_cell = 9;  // four adds, a fused scale, and the square of the update
  problem.wanted = output;
  return plan_sweeps(problem, machine, strategy);
}

DistTensor execute_jacobi(const Plan& plan, const std::vector<DistTensor>& inputs,
                          const JacobiOptions& options, SolveInfo& info) {
  const DistTensor grid = moved_to(inputs[0], plan.inputs[0].sharding);
  const Tensor rhs = moved_to(inputs[1], plan.inputs[1].sharding).local();
  Communicator& comm = grid.comm();
  const std::vector<Box> blocks = grid.sharding().owner_boxes(grid.shape());
  SweptRows rows(comm, grid.local(), blocks, grid.shape(), 1,
                 options.boundary == Boundary::kPeriodic);
  for (int64_t sweep = 1; sweep <= options.iterations; ++sweep) {
    check_interrupt();
    rows.exchange_halo();
    std::vector<double> squares;
    rows.sweep(1, 0, [&](const Tensor& padded, int64_t, const Tensor& out) {
      squares = cuop::jacobi2d_rows(padded, rhs, options.dx, options.boundary, &out).row_norms;
    });
    info.sweeps = sweep;
    if (!(options.tolerance > 0.0) && sweep < options.iterations) continue;
    info.update_norm = norm_of_rows(gather_rows(comm, squares, blocks, grid.shape(0)));
    if (info.update_norm < options.tolerance) break;
  }
  const Tensor u = rows.is_empty() ? grid.local() : rows.block();
  info.residual_norm = poisson_residual(comm, u, rhs, blocks, grid.shape(), options);
  return DistTensor(grid.comm_ptr(), grid.sharding(), grid.shape(), grid.dtype(), u);
}

/// Its calls leave in `info` what they did.
Operation operation(const JacobiOptions& options, const std::shared_ptr<SolveInfo>& info) {
  const auto execute = [options, info](const Plan& made, const std::vector<DistTensor>& inputs) {
    *info = {};
    return execute_jacobi(made, inputs, options, *info);
  };
  return {cat(std::setprecision(17), "jacobi_2d dx ", options.dx, ", boundary ",
              static_cast<int>(options.boundary), ", iterations ", options.iterations, ", tol ",
              options.tolerance),
          {"grid", "rhs"},
          std::bind_front(plan_jacobi, options),
          execute,
          /*is_on_host=*/false,
          [options] { return operation(options, std::make_shared<SolveInfo>()); }};
}

}  // namespace

DistTensor jacobi_2d(const DistTensor& grid, const DistTensor& rhs, const JacobiOptions& options,
                     SolveInfo* info, const CallOptions& call) {
  return with_info(info, [&](const auto& found) {
    return run_sharded(operation(options, found), {grid, rhs}, call);
  });
}

Tensor jacobi_2d_from_root(const CommunicatorPtr& comm, const Tensor& grid, const Tensor& rhs,
                           const JacobiOptions& options, SolveInfo* info, const CallOptions& call) {
  return with_info(info, [&](const auto& found) {
    return run_rooted(comm, operation(options, found), {grid, rhs}, call);
  });
}

}  // namespace cuop::dist
