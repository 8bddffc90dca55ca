#include <array>

#include "cuop/dist/agree.h"
#include "cuop/dist/algo/arithmetic.h"
#include "cuop/dist/algo/index.h"
#include "cuop/dist/algo/poisson_internal.h"
#include "cuop/dist/exec/planned.h"
#include "cuop/dist/exec/redistribute.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/index/view.h"

namespace cuop::dist {
namespace {

template <class AnyTensor>
void check(const AnyTensor& grid, const AnyTensor& rhs, double dx) {
  const std::vector<Header> headers{{grid.shape(), grid.dtype()}, {rhs.shape(), rhs.dtype()}};
  const Sharding one_rank = Sharding::on_rank(Mesh::line(1), 0);
  check_poisson(kSolvePoisson, placements_on({"grid", "rhs"}, headers, one_rank), {.dx = dx});
}

/// A line of cells of the frame and the line within that borders on it: the ranges of rows and of
/// columns of each, those within counted within.
struct Side {
  std::array<SliceIndex, 2> frame, within;
};

constexpr SliceIndex kFirst{0, 1}, kLast{-1, std::nullopt}, kInner{1, -1};
constexpr SliceIndex kAll{std::nullopt, std::nullopt};

std::array<Side, 4> sides() {
  return {Side{{kFirst, kInner}, {kFirst, kAll}}, Side{{kLast, kInner}, {kLast, kAll}},
          Side{{kInner, kFirst}, {kAll, kFirst}}, Side{{kInner, kLast}, {kAll, kLast}}};
}

Tensor part(const Tensor& x, const std::array<SliceIndex, 2>& ranges) {
  return slice(slice(x, 0, ranges[0].start, ranges[0].stop), 1, ranges[1].start, ranges[1].stop);
}
DistTensor part(const DistTensor& x, const std::array<SliceIndex, 2>& ranges) {
  return get_item(x, std::array<Index, 2>{ranges[0], ranges[1]});
}

template <class AnyTensor>
bool has_inner(const AnyTensor& grid) {
  return grid.shape(0) > 2 && grid.shape(1) > 2;
}

}  // namespace

DistTensor solved_within_frame(const DistTensor& grid, const DistTensor& rhs, double dx,
                               const std::optional<Sharding>& output, const SolveParts& solve) {
  // What is missing is told by the solver.
  if (!grid.is_defined() || !rhs.is_defined()) return solve(grid, rhs);
  make_together(grid.comm(), kSolvePoisson, [&] { return check(grid, rhs, dx), 0; });
  const std::array<SliceIndex, 2> inner{kInner, kInner};
  const DistTensor f = part(rhs, inner) * 1.0;
  if (has_inner(grid)) {
    for (const Side& side : sides()) {
      const DistTensor line = part(f, side.within);
      set_item(line, std::array<Index, 1>{EllipsisIndex{}},
               line - part(grid, side.frame) * (1.0 / (dx * dx)));
    }
  }
  const DistTensor u = grid * 1.0;
  const DistTensor solved = solve(part(grid, inner), f);
  set_item(u, std::array<Index, 2>{kInner, kInner}, solved);
  return output ? redistribute(u, *output) : u;
}

Tensor solved_within_frame(const CommunicatorPtr& comm, const Tensor& grid, const Tensor& rhs,
                           double dx, const SolveWhole& solve) {
  // What is missing is told by the solver.
  if (comm->rank() != 0 || !grid.is_defined() || !rhs.is_defined()) return solve(grid, rhs);
  const std::array<SliceIndex, 2> inner{kInner, kInner};
  const Tensor f = make_together(*comm, kSolvePoisson, [&] {
    check(grid, rhs, dx);
    const Tensor made = clone(to_device(part(rhs, inner), grid.device()));
    if (!has_inner(grid)) return made;
    for (const Side& side : sides()) {
      const Tensor line = part(made, side.within);
      subtract(line, multiply(part(grid, side.frame), 1.0 / (dx * dx)), &line);
    }
    return made;
  });
  const Tensor u = clone(grid);
  copy_into(part(u, inner), solve(part(grid, inner), f));
  return u;
}

}  // namespace cuop::dist
