#include <algorithm>
#include <functional>
#include <iomanip>

#include "cuop/core/interrupt.h"
#include "cuop/core/text.h"
#include "cuop/dist/algo/poisson_internal.h"
#include "cuop/dist/exec/call.h"
#include "cuop/dist/exec/redistribute.h"
#include "cuop/dist/exec/sweep.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"

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
  problem.max_depth = std::clamp<int64_t>(options.iterations, 1, kMaxDepth);
  problem.is_watched = options.tolerance > 0.0;
  problem.wanted = output;
  return plan_sweeps(problem, machine, strategy);
}

/// The grid of one rank as it is swept.
class Sweeps {
 public:
  Sweeps(const DistTensor& grid, const Tensor& rhs, int64_t depth, const JacobiOptions& options)
      : comm_(grid.comm()),
        blocks_(grid.sharding().owner_boxes(grid.shape())),
        height_(grid.shape(0)),
        options_(options),
        grid_(comm_, grid.local(), blocks_, grid.shape(), depth, is_periodic()),
        rhs_(comm_, rhs, blocks_, grid.shape(), depth - 1, is_periodic()),
        squares_(empty({depth, rhs.shape(0)}, DType::kFloat64, rhs.device())) {
    rhs_.exchange_halo();
  }

  const SweptRows& grid() const { return grid_; }
  const std::vector<Box>& blocks() const { return blocks_; }

  /// Fetches the halo for `count` sweeps and makes them; the last `measured` leave their norms.
  void make(int64_t count, int64_t measured) {
    grid_.exchange_halo();
    if (count > 1) grid_.keep();
    sweep(count, count, measured);
  }
  /// After `make(count, ...)`: the grid as after `make(wanted, ...)`.
  void go_back(int64_t wanted, int64_t count) {
    if (wanted == count) return;
    grid_.restore();
    sweep(wanted, count, 0);
  }
  /// The norms over the whole grid of the updates of the last `make(..., measured)`.
  std::vector<double> norms(int64_t measured) const {
    return norms_of_rows(comm_, slice(squares_, 0, 0, measured), blocks_, height_);
  }

 private:
  bool is_periodic() const { return options_.boundary == Boundary::kPeriodic; }

  /// `wanted` of `count` sweeps: of rows beyond the block as many as the sweeps that follow read.
  void sweep(int64_t wanted, int64_t count, int64_t measured) {
    const int64_t most = jacobi_sweeps_at_once(squares_.device());
    for (int64_t done = 0; done < wanted;) {
      const int64_t now = std::min(most, wanted - done);
      grid_.sweep(now, count - done - now,
                  [&](const Tensor& padded, int64_t first, const Tensor& out) {
                    const int64_t more = now - 1, end = first + out.shape(0);
                    const Interval in_grid = grid_.in_grid();
                    const JacobiSweep made = cuop::jacobi2d_rows(
                        padded, rhs_.rows(first - more, end + more), options_.dx, options_.boundary,
                        &out, {now, in_grid.low - first, in_grid.high - first});
                    keep_norms(made.row_norms, first, done - (wanted - measured));
                  });
      done += now;
    }
  }
  /// Of sweeps of which the first is number `at` of those that are measured, negative before them;
  /// the norms' first row is row `first` of the block.
  void keep_norms(const Tensor& norms, int64_t first, int64_t at) {
    const int64_t rows = squares_.shape(1);
    const Tensor made = reshape(norms, {-1, norms.shape(norms.ndim() - 1)});
    const int64_t skipped = std::max<int64_t>(0, -at), sweeps = made.shape(0);
    if (skipped >= sweeps) return;
    const Tensor own = slice(slice(made, 0, skipped, sweeps), 1, -first, rows - first);
    copy_into(slice(squares_, 0, at + skipped, at + sweeps), own);
  }

  Communicator& comm_;
  std::vector<Box> blocks_;
  int64_t height_;
  JacobiOptions options_;
  SweptRows grid_;
  SweptRows rhs_;
  Tensor squares_;  ///< sums of squares of measured updates, [sweep, row of the block]
};

DistTensor execute_jacobi(const Plan& plan, const std::vector<DistTensor>& inputs,
                          const JacobiOptions& options, SolveInfo& info) {
  const DistTensor grid = moved_to(inputs[0], plan.inputs[0].sharding);
  const Tensor rhs = moved_to(inputs[1], plan.inputs[1].sharding).local();
  const int64_t depth = plan.setting("depth");
  Sweeps sweeps(grid, rhs, depth, options);
  const bool is_watched = options.tolerance > 0.0;
  bool is_done = false;
  while (!is_done && info.sweeps < options.iterations) {
    check_interrupt();
    int64_t now = std::min(depth, options.iterations - info.sweeps);
    const bool is_last = info.sweeps + now == options.iterations;
    const int64_t measured = is_watched ? now : is_last ? 1 : 0;
    sweeps.make(now, measured);
    if (measured > 0) {
      const std::vector<double> norms = sweeps.norms(measured);
      const auto small = std::find_if(norms.begin(), norms.end(),
                                      [&](double norm) { return norm < options.tolerance; });
      is_done = small != norms.end();
      if (is_done) {
        const int64_t wanted = small - norms.begin() + 1;
        sweeps.go_back(wanted, now);
        now = wanted;
      }
      info.update_norm = is_done ? *small : norms.back();
    }
    info.sweeps += now;
  }
  const Tensor u = sweeps.grid().is_empty() ? grid.local() : sweeps.grid().block();
  info.residual_norm =
      poisson_residual(grid.comm(), u, rhs, sweeps.blocks(), grid.shape(), options);
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
