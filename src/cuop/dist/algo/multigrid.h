// Internal: geometric multigrid for the five-point operator on blocks of rows. V-cycles of
// red-black Gauss-Seidel relaxation, linear interpolation and its transpose (W. L. Briggs, V. E.
// Henson, S. F. McCormick: A Multigrid Tutorial, 2nd ed., 2000, chapters 3 and 7), with the sizes
// of plan/multigrid_levels.h.
#pragma once

#include <deque>
#include <vector>

#include "cuop/dist/algo/row_equation.h"
#include "cuop/dist/exec/row_window.h"
#include "cuop/dist/plan/multigrid_levels.h"

namespace cuop::dist {

class Multigrid {
 public:
  /// `shared_cells` as multigrid_levels says.
  Multigrid(Communicator& comm, const FivePoint& op, const std::vector<Box>& blocks,
            int64_t shared_cells, DType dtype, Device device);

  /// The given grid; who writes to its b calls `fetch_rhs` before the next cycle.
  RowEquation& finest() { return grids_.front(); }
  /// Improves u: a V-cycle. Collective. The halo of u is stale afterwards.
  void cycle() { cycle(0); }

 private:
  /// Between a grid and the next coarser one.
  struct Transfer {
    RowWindow fine,
        coarse;  ///< that are read: residuals on the way down, corrections on the way up
    BandTable rows_down, columns_down, rows_up, columns_up;
    Tensor residual;  ///< of the finer grid
  };

  static Transfer transfer(Communicator& comm, const MultigridLevel& fine,
                           const MultigridLevel& coarse, DType dtype, Device device);
  void cycle(size_t number);

  std::deque<RowEquation> grids_;
  std::deque<Transfer> transfers_;
};

}  // namespace cuop::dist
