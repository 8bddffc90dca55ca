// Internal: given values on the frame of a grid become a part of the right-hand side of the cells
// within, beyond which zeros stand then.
#pragma once

#include <functional>
#include <optional>

#include "cuop/dist/dist_tensor.h"

namespace cuop::dist {

/// `solve(inner, f)` solves Laplace(u) = f with zeros around it, from `inner`; the result is its
/// answer within the frame of `grid`. Grids of fewer than 3 rows or columns have nothing within.
/// Collective; `output` is where the result is wanted, that is as grid where it is none.
/// ShapeError, DTypeError as `solve` says them of such a grid and rhs.
using SolveParts = std::function<DistTensor(const DistTensor& inner, const DistTensor& f)>;
DistTensor solved_within_frame(const DistTensor& grid, const DistTensor& rhs, double dx,
                               const std::optional<Sharding>& output, const SolveParts& solve);
/// The same on rank 0, undefined tensors elsewhere.
using SolveWhole = std::function<Tensor(const Tensor& inner, const Tensor& f)>;
Tensor solved_within_frame(const CommunicatorPtr& comm, const Tensor& grid, const Tensor& rhs,
                           double dx, const SolveWhole& solve);

}  // namespace cuop::dist
