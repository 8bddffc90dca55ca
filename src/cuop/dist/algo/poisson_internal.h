// Internal: what Jacobi's method and the direct solver of the Poisson equation share.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cuop/dist/algo/stencil.h"

namespace cuop::dist {

/// ShapeError, DTypeError, ExecutionError unless grid and rhs are float32 or float64 [h, w] alike
/// and the options make sense.
void check_poisson(const std::string& who, const std::vector<Placement>& inputs,
                   const JacobiOptions& options);

/// 2-norms of the whole, on every rank, from the sums of squares of each rank's rows: float64
/// [n, rows of the block], one norm for each of n. Added in one order for any number of ranks.
/// Waits for the device, once.
std::vector<double> norms_of_rows(Communicator& comm, const Tensor& squares,
                                  const std::vector<Box>& blocks, int64_t rows);

/// 2-norm of rhs - Laplace(u) over the whole grid; collective. `blocks` are whole rows.
double poisson_residual(Communicator& comm, const Tensor& u, const Tensor& rhs,
                        const std::vector<Box>& blocks, const Shape& grid,
                        const JacobiOptions& options);

/// run(found), a call that leaves in `found` what it did; `info` gets that where it is not null.
template <class Run>
auto with_info(SolveInfo* info, const Run& run) {
  const auto found = std::make_shared<SolveInfo>();
  auto result = run(found);
  if (info != nullptr) *info = *found;
  return result;
}

}  // namespace cuop::dist
