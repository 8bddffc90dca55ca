#include "cuop/dist/algo/stencil.h"

#include <algorithm>
#include <functional>

#include "cuop/core/error.h"
#include "cuop/core/interrupt.h"
#include "cuop/core/text.h"
#include "cuop/dist/algo/operations.h"
#include "cuop/dist/exec/call.h"
#include "cuop/dist/exec/exchange.h"
#include "cuop/dist/exec/sweep.h"
#include "cuop/dist/plan/stencil_plan.h"
#include "cuop/ops/copy/copy.h"

namespace cuop::dist {
namespace {

Plan plan_stencil(Boundary boundary, int64_t iterations, const PlanArguments& given) {
  check_stencil(given.inputs, iterations);
  const Placement& grid = given.inputs[0];
  const Placement& kernel = given.inputs[1];
  SweepProblem problem;
  problem.op = "stencil_2d";
  problem.inputs = {grid};
  problem.whole = {kernel};
  problem.radius = kernel.shape[0] / 2;
  problem.column_radius = kernel.shape[1] / 2;
  problem.is_periodic = boundary == Boundary::kPeriodic;
  problem.iterations = iterations;
  problem.flops_per_cell = 2.0 * static_cast<double>(element_count(kernel.shape));
  problem.max_depth = std::clamp<int64_t>(iterations, 1, kMaxDepth);
  problem.wanted = given.output;
  return plan_sweeps(problem, given.machine, given.strategy);
}

DistTensor execute_stencil(Boundary boundary, int64_t iterations, const Plan& plan,
                           const std::vector<DistTensor>& inputs) {
  const DistTensor grid = moved_to(inputs[0], plan.inputs[0].sharding);
  // On the host, from where its weights go into the kernels' arguments.
  const Tensor kernel = to_device(moved_to(inputs[1], plan.inputs[1].sharding).local(), kCpu);
  const int64_t radius = inputs[1].shape(0) / 2, column_radius = inputs[1].shape(1) / 2;
  const int64_t depth = plan.setting("depth");
  SweptBlock swept(grid.comm(), grid.local(),
                   {grid.sharding().owner_boxes(grid.shape()), grid.shape(), radius * depth,
                    column_radius * depth, boundary == Boundary::kPeriodic},
                   plan.setting("overlap") != 0);
  using Work = SweptBlock::Sweep;
  const Boundary sides = swept.has_whole_rows() ? boundary : Boundary::kZero;
  const int64_t at_once = swept.is_empty() ? 1 : row_sweeps_at_once(grid.local(), kernel);
  for (int64_t done = 0; done < iterations; done += depth) {
    check_interrupt();
    const int64_t sweeps = std::min(depth, iterations - done);
    for (int64_t left = sweeps; left > 0;) {
      const int64_t now = std::min(at_once, left);
      left -= now;
      const Work work = [&](const SweptPart& part) {
        const Interval in_grid = swept.in_grid();
        cuop::stencil2d_rows(part.padded, kernel, sides, &part.out,
                             {.sweeps = now,
                              .first = in_grid.low - part.first,
                              .last = in_grid.high - part.first,
                              .first_made = part.made.low,
                              .last_made = part.made.high});
      };
      const bool is_first = left + now == sweeps;
      if (is_first) {
        swept.exchange_and_sweep(radius * now, column_radius * now, radius * left, work);
      } else {
        swept.sweep(radius * now, radius * left, work);
      }
    }
  }
  return DistTensor(grid.comm_ptr(), grid.sharding(), grid.shape(), grid.dtype(),
                    swept.is_empty() ? grid.local() : swept.block());
}

}  // namespace

Operation stencil_operation(Boundary boundary, int64_t iterations) {
  const char* name = boundary == Boundary::kPeriodic ? "periodic" : "zero";
  return {cat("stencil_2d boundary ", name, ", iterations ", iterations),
          {"grid", "kernel"},
          std::bind_front(plan_stencil, boundary, iterations),
          std::bind_front(execute_stencil, boundary, iterations)};
}

void check_stencil(const std::vector<Placement>& inputs, int64_t iterations) {
  if (inputs.size() != 2) throw ExecutionError("stencil_2d: the kernel was not given");
  const Placement& grid = inputs[0];
  const Placement& kernel = inputs[1];
  if (grid.shape.ndim() != 2) {
    throw ShapeError(cat("stencil_2d: a grid of 2 dimensions is needed, given ", grid.shape));
  }
  if (!is_floating(grid.dtype) && !is_complex(grid.dtype)) {
    throw DTypeError(
        cat("stencil_2d: a floating grid is needed, real or complex, given ", grid.dtype));
  }
  if (iterations < 0) {
    throw ExecutionError(
        cat("stencil_2d: ", iterations, " iterations were given, needed are 0 or more"));
  }
  const bool is_matrix = kernel.shape.ndim() == 2;
  if (is_matrix && is_complex(kernel.dtype) && !is_complex(grid.dtype)) {
    throw DTypeError(cat("stencil_2d: the kernel is ", kernel.dtype, ", the grid ", grid.dtype,
                         "; a complex kernel needs a complex grid"));
  }
  if (!is_matrix || kernel.shape[0] % 2 == 0 || kernel.shape[1] % 2 == 0) {
    throw ShapeError(cat("stencil_2d: the kernel has shape ", kernel.shape,
                         "; needed are 2 dimensions of odd size"));
  }
}

DistTensor stencil_2d(const DistTensor& grid, const DistTensor& kernel, Boundary boundary,
                      int64_t iterations, const CallOptions& call) {
  return run_sharded(stencil_operation(boundary, iterations), {grid, kernel}, call);
}

Tensor stencil_2d_from_root(const CommunicatorPtr& comm, const Tensor& grid, const Tensor& kernel,
                            Boundary boundary, int64_t iterations, const CallOptions& call) {
  return run_rooted(comm, stencil_operation(boundary, iterations), {grid, kernel}, call);
}

}  // namespace cuop::dist
