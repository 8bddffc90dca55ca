// Sweeps over grids larger than memory: bands of rows come to a device with the rows around them
// that several sweeps reach, are swept so often, and go back. A grid that fits is swept as it is by
// all ranks (dist/algo/stencil).
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cuop/dist/algo/stencil.h"
#include "cuop/executor/call_plan.h"
#include "cuop/executor/tiled_call.h"

namespace cuop::executor {

/// One pass: `sweeps` applications of a kernel to bands of rows. Inputs: grid, kernel.
TileOperation stencil_tiles(Boundary boundary, int64_t sweeps);

/// The squares of the updates of each sweep of a pass, row by row.
struct UpdateNorms {
  int64_t rows = 0;
  std::vector<double> squares = {};  ///< [sweep, row], zero where other ranks know them
  std::vector<char> is_known = {};   ///< of each row, whether it was made here
  std::vector<char> is_left = {};    ///< or by an earlier run

  /// Of a pass of so many sweeps nothing is known.
  void begin(int64_t sweeps);
  void put(int64_t sweep, Interval at, const Tensor& norms);
  /// Those of all sweeps, [sweep, row], if these rows were made here.
  std::optional<std::vector<double>> of_rows(Interval at) const;
  /// The same of an earlier run's rows, before others are made. ExecutionError when they are of
  /// other sweeps.
  void restore(Interval at, const std::vector<double>& known);
  /// Collective, when the pass is made: those of all rows, on every rank.
  void share(dist::Communicator& comm);
  /// 2-norm of the update over the whole grid: the sum of its rows, in order.
  double norm(int64_t sweep) const;
};
/// One pass of Jacobi's method. Inputs: grid, rhs. Ranks put the rows that they make into `norms`,
/// which is theirs; to plan, it may be null.
TileOperation jacobi_tiles(const JacobiOptions& jacobi, int64_t sweeps,
                           const std::shared_ptr<UpdateNorms>& norms);

/// Bytes of a device with which a grid is swept as it is.
int64_t whole_grid_bytes(const Header& grid);
/// Passes of so many sweeps over a grid: those of the depth by which a sweep is predicted to take
/// least; none for one that fits, if it `may_be_whole`. Inputs: grid, kernel or rhs.
CallPlan stencil_plan(Boundary boundary, int64_t iterations, const std::vector<Header>& inputs,
                      const PlanPass& plan, bool may_be_whole = true);
CallPlan jacobi_plan(const JacobiOptions& jacobi, const std::vector<Header>& inputs,
                     const PlanPass& plan, bool may_be_whole = true);

/// dist::stencil_2d_from_root of a grid on rank 0's host.
Tensor stencil_2d(const dist::CommunicatorPtr& comm, const Tensor& grid, const Tensor& kernel,
                  Boundary boundary, int64_t iterations, const TiledOptions& options = {});

/// dist::jacobi_2d_from_root of a grid on rank 0's host: the same sweeps, the same bits.
Tensor jacobi_2d(const dist::CommunicatorPtr& comm, const Tensor& grid, const Tensor& rhs,
                 const JacobiOptions& jacobi, dist::SolveInfo* info = nullptr,
                 const TiledOptions& options = {});

}  // namespace cuop::executor
