// Internal: iterative solvers of A u = b on blocks of rows.
#pragma once

#include "cuop/dist/algo/multigrid.h"
#include "cuop/dist/algo/stencil.h"

namespace cuop::dist {

/// How long a solver goes on.
struct Patience {
  int64_t iterations = 0;
  double tolerance = 0.0;  ///< of the residual over b, or over the first residual where b is zero
};

/// All of them begin with the equation's u, whose halo is fresh, and leave the solution there; they
/// count their iterations in info.sweeps. Collective.
void solve_by_multigrid(Communicator& comm, Multigrid& multigrid, const Patience& patience,
                        SolveInfo& info);
/// Its halo must serve `kSorSweeps` sweeps.
void solve_by_sor(Communicator& comm, RowEquation& equation, const Patience& patience,
                  SolveInfo& info);
void solve_by_cg(Communicator& comm, RowEquation& equation, const Patience& patience,
                 SolveInfo& info);
/// For ends without flux: u <- (N + S + E + W + b) / 4 with an end's own cell beyond it. The
/// tolerance is of a sweep's update, whose norm goes to info.
void solve_by_jacobi(Communicator& comm, RowEquation& equation, const Patience& patience,
                     SolveInfo& info);

/// Sweeps of over-relaxation on one halo.
inline constexpr int kSorSweeps = 4;
/// The factor with which successive over-relaxation converges fastest: 2 / (1 + sqrt(1 - r^2)) for
/// the largest number r below 1 by which a sweep of Jacobi's method multiplies a mode (Young).
double best_factor(const FivePoint& op);

}  // namespace cuop::dist
