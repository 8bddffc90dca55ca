// Sweeps over 2-D grids cut into blocks of rows, of columns or of both. Every cell is computed by
// the same operations in the same order on any number of ranks, so results are equal bit for bit.
#pragma once

#include "cuop/dist/exec/operation.h"
#include "cuop/ops/stencil/stencil.h"

namespace cuop::dist {

/// Errors unless the inputs are a floating or complex grid [h, w] and a kernel of odd sizes,
/// complex of a complex grid alone, and the iterations 0 or more.
void check_stencil(const std::vector<Placement>& inputs, int64_t iterations);

/// Applies `kernel` `iterations` times to `grid`, as ops/stencil says. In the rooted form the
/// kernel is read on rank 0. Strategies: "row", "column", "block_2d", "root".
DistTensor stencil_2d(const DistTensor& grid, const DistTensor& kernel,
                      Boundary boundary = Boundary::kZero, int64_t iterations = 1,
                      const CallOptions& call = {});
Tensor stencil_2d_from_root(const CommunicatorPtr& comm, const Tensor& grid, const Tensor& kernel,
                            Boundary boundary = Boundary::kZero, int64_t iterations = 1,
                            const CallOptions& call = {});

/// What a solver says of its work; the same on every rank.
struct SolveInfo {
  int64_t sweeps = 0;          ///< or iterations or cycles; 0 of a direct solver
  double update_norm = 0.0;    ///< 2-norm of the last update of Jacobi's method over the whole grid
  double residual_norm = 0.0;  ///< 2-norm of rhs - Laplace(u) over the whole grid
  double dropped_mean = 0.0;   ///< mean of rhs, where the solved equation is without it
};

/// Jacobi's method for Laplace(u) = rhs from the given grid; stops early when the 2-norm of a
/// sweep's update over the whole grid is below the tolerance. The number of sweeps does not depend
/// on the number of ranks. Strategies as above.
DistTensor jacobi_2d(const DistTensor& grid, const DistTensor& rhs,
                     const JacobiOptions& options = {}, SolveInfo* info = nullptr,
                     const CallOptions& call = {});
Tensor jacobi_2d_from_root(const CommunicatorPtr& comm, const Tensor& grid, const Tensor& rhs,
                           const JacobiOptions& options = {}, SolveInfo* info = nullptr,
                           const CallOptions& call = {});

/// Solves Laplace(u) = rhs exactly (to rounding): the five-point Laplacian is diagonal in sine
/// (boundary zero) or Fourier modes (periodic; the mean of u, which rhs leaves open, is that of
/// `grid`, and the mean of rhs, which no u has, is dropped). Two transforms there, two back.
/// Strategies: "pencil", "root".
DistTensor poisson_2d(const DistTensor& grid, const DistTensor& rhs,
                      const JacobiOptions& options = {}, SolveInfo* info = nullptr,
                      const CallOptions& call = {});
Tensor poisson_2d_from_root(const CommunicatorPtr& comm, const Tensor& grid, const Tensor& rhs,
                            const JacobiOptions& options = {}, SolveInfo* info = nullptr,
                            const CallOptions& call = {});

}  // namespace cuop::dist
