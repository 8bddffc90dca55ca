#include "cuop/executor/grid_fft.h"

#include <algorithm>
#include <utility>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/executor/passes.h"

namespace cuop::executor {
namespace {

constexpr const char* kRowsAndColumns = "rows and columns";

TileOperation whole_grid(FftNorm norm) { return fft2d_tiles({{}, {-2, -1}, {norm, false}}); }
TileOperation lines_along(int64_t axis, FftNorm norm) {
  return fft_tiles({dist::FftKind::kFft, {}, axis, norm});
}

}  // namespace

CallPlan fft2d_plan(const Header& grid, FftNorm norm, const PlanPass& plan) {
  if (grid.shape.ndim() != 2) {
    throw ShapeError(cat("fft2d: a grid of 2 dimensions is needed, given ", grid.shape));
  }
  const TileOperation rows = lines_along(1, norm);
  const CallPlan whole = at_once(plan(whole_grid(norm), {grid}));
  const TilePlan first = plan(rows, {grid});
  const TilePlan second = plan(lines_along(0, norm), {rows.describe({grid}).output});
  CallPlan parts = in_passes(kRowsAndColumns, {{"rows", 1, first}, {"columns", 1, second}}, whole);
  parts.smallest = std::min(parts.smallest, whole.smallest);
  parts.kept_scratch = bytes_of(rows.describe({grid}).output);
  const bool is_whole =
      whole.is_feasible() && (!parts.is_feasible() || whole.seconds() <= parts.seconds());
  return is_whole ? whole : parts;
}

Tensor fft2d_grid(const dist::CommunicatorPtr& comm, const Tensor& x, FftNorm norm,
                  const TiledOptions& options) {
  const Header grid = agree_headers(*comm, "fft2d", {x}, options)[0];
  const CallPlan plan = fft2d_plan(grid, norm, on_ranks(comm, options));
  Passes passes(comm, "fft2d", options);
  const std::string way = way_of(passes, plan, {{kAtOnce, 0}, {kRowsAndColumns, 1}});
  const Header made = lines_along(1, norm).describe({grid}).output;
  if (way == kAtOnce) {
    passes.open({made});
    return passes.run({0, way, {}}, whole_grid(norm), {x});
  }
  // In place, as tiles share no element, where no later run needs the rows.
  passes.open(std::vector<Header>(passes.is_kept() ? 2 : 1, made));
  const bool has_rows = passes.left() && passes.left()->number == 1;
  const Tensor rows =
      has_rows ? passes.made(0) : passes.run({0, way, {}}, lines_along(1, norm), {x});
  return passes.run({1, way, {}}, lines_along(0, norm), {rows});
}

}  // namespace cuop::executor
