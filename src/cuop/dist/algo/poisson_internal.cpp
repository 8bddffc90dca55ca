#include "cuop/dist/algo/poisson_internal.h"

#include <cmath>
#include <numeric>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/exec/sweep.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"

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

std::vector<double> norms_of_rows(Communicator& comm, const Tensor& squares,
                                  const std::vector<Box>& blocks, int64_t rows) {
  const int64_t count = squares.shape(0);
  std::vector<Block> parts;
  for (const Box& block : blocks) {
    const auto bytes = count * static_cast<int64_t>(sizeof(double));
    // A rank without cells says nothing, even when the grid has rows of no cell.
    parts.push_back(
        block.empty() ? Block{} : Block{block.low[0] * bytes, block.interval(0).length() * bytes});
  }
  const Tensor all = empty({count * rows}, DType::kFloat64, squares.device());
  comm.all_gather(contiguous(squares).data(), parts, all.data(), current_stream(squares.device()));
  const Tensor on_host = to_device(all, kCpu);
  std::vector<double> norms(static_cast<size_t>(count), 0.0);
  for (const Box& block : blocks) {
    if (block.empty()) continue;
    const double* values = on_host.data<double>() + block.low[0] * count;
    for (double& norm : norms) {
      const double* const end = values + block.interval(0).length();
      norm = std::accumulate(values, end, norm);
      values = end;
    }
  }
  for (double& norm : norms) norm = std::sqrt(norm);
  return norms;
}

double poisson_residual(Communicator& comm, const Tensor& u, const Tensor& rhs,
                        const std::vector<Box>& blocks, const Shape& grid,
                        const JacobiOptions& options) {
  SweptRows rows(comm, u, blocks, grid, 1, options.boundary == Boundary::kPeriodic);
  rows.exchange_halo();
  Tensor squares = zeros({u.shape(0)}, DType::kFloat64, u.device());
  if (!rows.is_empty()) {
    squares = cuop::poisson_residual_rows(rows.padded(1), rhs, options.dx, options.boundary);
  }
  return norms_of_rows(comm, unsqueeze(squares, 0), blocks, grid[0])[0];
}

}  // namespace cuop::dist
