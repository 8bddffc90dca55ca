#include "cuop/dist/algo/poisson_internal.h"

#include <cmath>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/exec/sweep.h"

namespace cuop::dist {

void check_poisson(const std::string& who, const std::vector<Placement>& inputs,
                   const JacobiOptions& options) {
  if (inputs.size() != 2) throw ExecutionError(cat(who, ": rhs was not given"));
  const Placement& grid = inputs[0];
  const Placement& rhs = inputs[1];
  if (grid.shape.ndim() != 2 || rhs.shape != grid.shape) {
    throw ShapeError(cat(who, ": grid ", grid.shape, " and rhs ", rhs.shape,
                         " were given; needed are two of one shape (h, w)"));
  }
  if ((grid.dtype != DType::kFloat32 && grid.dtype != DType::kFloat64) || rhs.dtype != grid.dtype) {
    throw DTypeError(cat(who, ": grid is ", grid.dtype, ", rhs is ", rhs.dtype,
                         "; needed is float32 or float64 for both"));
  }
  if (!(options.dx > 0.0) || options.iterations < 0) {
    throw ExecutionError(cat(who, ": dx ", options.dx, ", iterations ", options.iterations,
                             " were given; dx must be above 0, iterations 0 or more"));
  }
}

std::vector<double> gather_rows(Communicator& comm, const std::vector<double>& mine,
                                const std::vector<Box>& blocks, int64_t rows) {
  std::vector<Block> parts;
  for (const Box& block : blocks) {
    constexpr auto kBytes = static_cast<int64_t>(sizeof(double));
    // A rank without cells says nothing, even when the grid has rows of no cell.
    parts.push_back(block.empty()
                        ? Block{}
                        : Block{block.low[0] * kBytes, block.interval(0).length() * kBytes});
  }
  std::vector<double> all(static_cast<size_t>(rows), 0.0);
  comm.all_gather(mine.data(), parts, all.data());
  return all;
}

double norm_of_rows(std::vector<double> squares) {
  return std::sqrt(JacobiSweep{{}, std::move(squares)}.squared_norm());
}

double poisson_residual(Communicator& comm, const Tensor& u, const Tensor& rhs,
                        const std::vector<Box>& blocks, const Shape& grid,
                        const JacobiOptions& options) {
  SweptRows rows(comm, u, blocks, grid, 1, options.boundary == Boundary::kPeriodic);
  rows.exchange_halo();
  std::vector<double> mine;
  if (!rows.is_empty()) {
    mine = cuop::poisson_residual_rows(rows.padded(1), rhs, options.dx, options.boundary);
  }
  return norm_of_rows(gather_rows(comm, mine, blocks, grid[0]));
}

}  // namespace cuop::dist
