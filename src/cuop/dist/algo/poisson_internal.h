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

/// The values of all rows of the grid in order, on every rank, from those of each rank's rows.
std::vector<double> gather_rows(Communicator& comm, const std::vector<double>& mine,
                                const std::vector<Box>& blocks, int64_t rows);

/// 2-norm of the whole from the rows' sums of squares, added in one order for any number of ranks.
double norm_of_rows(std::vector<double> squares);

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
