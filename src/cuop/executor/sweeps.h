// Sweeps over grids larger than memory: bands of rows come to a device with the rows around them
// that several sweeps reach, are swept so often, and go back. A grid that fits is swept as it is by
// all ranks (dist/algo/stencil).
#pragma once

#include <memory>
#include <vector>

#include "cuop/dist/algo/stencil.h"
#include "cuop/executor/tiled_call.h"

namespace cuop::executor {

/// One pass: `sweeps` applications of a kernel to bands of rows. Inputs: grid, kernel.
TileOperation stencil_tiles(Boundary boundary, int64_t sweeps);

/// The squares of the updates of each sweep of a pass, row by row.
struct UpdateNorms {
  int64_t rows = 0;
  std::vector<double> squares = {};  ///< [sweep, row]

  void put(int64_t sweep, Interval at, const Tensor& norms);
  /// 2-norm of the update over the whole grid: the sum of its rows, in order.
  double norm(int64_t sweep) const;
};
/// One pass of Jacobi's method. Inputs: grid, rhs. Ranks put the rows that they make into `norms`,
/// which is theirs; to plan, it may be null.
TileOperation jacobi_tiles(const JacobiOptions& jacobi, int64_t sweeps,
                           const std::shared_ptr<UpdateNorms>& norms);

/// Bytes of a device with which a grid is swept as it is.
int64_t whole_grid_bytes(const Header& grid);
/// The passes of so many sweeps over a grid that does not fit: those of the depth by which a sweep
/// is predicted to take least. Inputs: grid, kernel or rhs.
TilePass stencil_passes(Boundary boundary, int64_t iterations, const std::vector<Header>& inputs,
                        const PlanPass& plan);
TilePass jacobi_passes(const JacobiOptions& jacobi, const std::vector<Header>& inputs,
                       const PlanPass& plan);

/// dist::stencil_2d_from_root of a grid on rank 0's host.
Tensor stencil_2d(const dist::CommunicatorPtr& comm, const Tensor& grid, const Tensor& kernel,
                  Boundary boundary, int64_t iterations, const TiledOptions& options = {});

/// dist::jacobi_2d_from_root of a grid on rank 0's host: the same sweeps, the same bits.
Tensor jacobi_2d(const dist::CommunicatorPtr& comm, const Tensor& grid, const Tensor& rhs,
                 const JacobiOptions& jacobi, dist::SolveInfo* info = nullptr,
                 const TiledOptions& options = {});

}  // namespace cuop::executor
