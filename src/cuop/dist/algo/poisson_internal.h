// Internal: what the solvers of the Poisson equation share.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cuop/core/five_point.h"
#include "cuop/dist/algo/stencil.h"

namespace cuop::dist {

/// The call, in its messages.
inline constexpr const char* kSolvePoisson = "solve_poisson_2d";

/// ShapeError, DTypeError, ExecutionError unless grid and rhs are float32 or float64 [h, w] alike
/// and the options make sense.
void check_poisson(const std::string& who, const std::vector<Placement>& inputs,
                   const JacobiOptions& options);

/// The ends of a grid with such edges.
AxisEnds ends_of(Boundary boundary);

/// 2-norms over the whole grid, the same bits on any number of ranks however u lies: sums over
/// whole rows, into blocks of which u is brought where its blocks are others. Collective.
class PoissonNorms {
 public:
  PoissonNorms(const DistTensor& rhs, double dx, AxisEnds ends);

  /// Of rhs - Laplace(u), computed in float64.
  double residual(const DistTensor& u) const;
  /// Of the update that a sweep of jacobi_2d makes to u; not of ends without flux.
  double update(const DistTensor& u) const;

 private:
  /// From rows with those around them, and rhs, to a sum of squares for each row.
  using RowSums = std::function<Tensor(const Tensor& padded, const Tensor& rhs)>;
  double norm(const DistTensor& u, const RowSums& sums) const;
  Boundary sides() const;

  DistTensor rhs_;  ///< in blocks of whole rows
  double dx_;
  AxisEnds ends_;
};

/// The direct solver for any ends; its calls leave in `info` what they did.
Operation direct_solver(const std::string& who, double dx, AxisEnds ends,
                        const std::shared_ptr<SolveInfo>& info);

/// The operation of a solver, whose calls leave in `info` what they did: planned as
/// Operation::plan says by `plan`, followed by solve(plan, inputs, info).
template <class PlanCall, class Solve>
Operation solver_operation(const std::string& text, const PlanCall& plan, const Solve& solve,
                           const std::shared_ptr<SolveInfo>& info) {
  const auto execute = [solve, info](const Plan& made, const std::vector<DistTensor>& inputs) {
    *info = {};
    return solve(made, inputs, *info);
  };
  return {text, {"grid", "rhs"}, plan, execute, /*is_on_host=*/false, [=] {
            return solver_operation(text, plan, solve, std::make_shared<SolveInfo>());
          }};
}

/// run(found), a call that leaves in `found` what it did; `info` gets that where it is not null.
template <class Run>
auto with_info(SolveInfo* info, const Run& run) {
  const auto found = std::make_shared<SolveInfo>();
  auto result = run(found);
  if (info != nullptr) *info = *found;
  return result;
}

// Given values on the frame of a grid become a part of the right-hand side of the cells within,
// beyond which zeros stand then (poisson_frame.cpp).

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
