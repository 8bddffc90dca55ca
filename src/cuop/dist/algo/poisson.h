// The Poisson equation Laplace(u) = rhs on a 2-D grid over ranks, by any of five methods. The
// Laplacian is (N + S + E + W - 4 u) / dx^2.
#pragma once

#include <string_view>

#include "cuop/dist/algo/stencil.h"

namespace cuop::dist {

/// What stands beyond the edges of the grid.
enum class PoissonBoundary : uint8_t {
  kZero,      ///< zeros
  kPeriodic,  ///< the opposite edge
  /// The first and last rows and columns of `grid` are given values, which stay as they are; only
  /// cells within are solved for, and rhs counts there alone.
  kDirichlet,
  /// The edge's own cell again, so that nothing flows through the edge: cells are centers of
  /// squares (centered differences of second order).
  kNeumann,
};
/// "zero", "periodic", "dirichlet" or "neumann"; ExecutionError otherwise.
PoissonBoundary parse_poisson_boundary(std::string_view text, const char* who);

enum class PoissonMethod : uint8_t {
  kJacobi,       ///< see jacobi_2d
  kRedBlackSor,  ///< successive over-relaxation in red-black order, with the best factor (D. M.
                 ///< Young, 1954); O(n) sweeps for n x n
  kCg,           ///< conjugate gradients (M. R. Hestenes, E. Stiefel, 1952); O(n) iterations
  kMultigrid,    ///< V-cycles, each reducing the residual by 7 to 10 or more whatever the size
  kDirect,       ///< sine, cosine or Fourier transforms, to rounding
};
/// "jacobi", "rb-sor", "cg", "multigrid" or "direct"; ExecutionError otherwise.
PoissonMethod parse_poisson_method(std::string_view text, const char* who);

struct PoissonOptions {
  double dx = 1.0;  ///< grid spacing
  PoissonBoundary boundary = PoissonBoundary::kZero;
  PoissonMethod method = PoissonMethod::kMultigrid;
  int64_t iterations = 1000;  ///< most sweeps, iterations or cycles
  /// kJacobi: of the 2-norm of a sweep's update. Others but kDirect: of the 2-norm of the residual
  /// over that of the right-hand side that is solved for (of the first residual where that is 0):
  /// rhs within kDirichlet's edges, less their values / dx^2 in the cells beside them, as rounding
  /// leaves a residual in proportion to those; rhs without its mean where that is left out.
  double tolerance = 1e-6;
};

/// Solves from the given grid, float32 or float64 [h, w] of any sizes, as rhs.
///
/// Where the edges leave the mean of u open (periodic, kNeumann) it is that of `grid`, and the mean
/// of rhs, which no u has, is left out (SolveInfo::dropped_mean); only kJacobi with periodic edges
/// sweeps with rhs as it is. kRedBlackSor looks at its residual every 16 sweeps and kCg every 8.
/// kMultigrid ends too where a cycle no longer halves the residual, and kCg where its true residual
/// no longer falls, as rounding is all that is left then.
///
/// kRedBlackSor and kMultigrid give the same bits on any number of ranks, on the CPU and on GPUs
/// the same u for as many sweeps; kCg's sums over the grid do not depend on the number of ranks
/// either. Strategies: of kJacobi those of jacobi_2d, of kDirect "pencil" and "root", of others
/// "row" and "root".
DistTensor solve_poisson_2d(const DistTensor& grid, const DistTensor& rhs,
                            const PoissonOptions& options = {}, SolveInfo* info = nullptr,
                            const CallOptions& call = {});
Tensor solve_poisson_2d_from_root(const CommunicatorPtr& comm, const Tensor& grid,
                                  const Tensor& rhs, const PoissonOptions& options = {},
                                  SolveInfo* info = nullptr, const CallOptions& call = {});

}  // namespace cuop::dist
