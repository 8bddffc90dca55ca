#include "cuop/executor/grid_fft.h"

#include <algorithm>
#include <utility>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/executor/line_steps.h"
#include "cuop/executor/passes.h"

namespace cuop::executor {
namespace {

constexpr const char* kAtOnce = "at once";
constexpr const char* kRowsAndColumns = "rows and columns";
constexpr const char* kFourSteps = "four steps";

TileOperation whole_grid(FftNorm norm) { return fft2d_tiles({{}, {-2, -1}, {norm, false}}); }
TileOperation lines_along(int64_t axis, FftNorm norm) {
  return fft_tiles({dist::FftKind::kFft, {}, axis, norm});
}

/// The way of the call: of an earlier run that has left its passes, theirs.
std::string way_of(const Passes& passes, const CallPlan& plan,
                   const std::vector<std::string>& ways) {
  const auto& left = passes.left();
  if (!left) {
    check_feasible(plan);
    return plan.way;
  }
  const bool is_known = std::find(ways.begin(), ways.end(), left->way) != ways.end();
  const int64_t most = left->way == kAtOnce ? 0 : 1;
  if (is_known && left->number >= 0 && left->number <= most) return left->way;
  throw ExecutionError(cat(plan.op, ": a run was cut off in pass ", left->number, " of \"",
                           left->way, "\", with which this one cannot go on"));
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
  const bool is_whole =
      whole.is_feasible() && (!parts.is_feasible() || whole.seconds() <= parts.seconds());
  return is_whole ? whole : parts;
}

Tensor fft2d_grid(const dist::CommunicatorPtr& comm, const Tensor& x, FftNorm norm,
                  const TiledOptions& options) {
  const Header grid = agree_headers(*comm, "fft2d", {x}, options)[0];
  const CallPlan plan = fft2d_plan(grid, norm, on_ranks(comm, options));
  Passes passes(comm, "fft2d", options);
  const std::string way = way_of(passes, plan, {kAtOnce, kRowsAndColumns});
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

CallPlan fft_line_plan(const dist::FftBatch& batch, const Header& x, const PlanPass& plan) {
  const TileOperation lines = fft_tiles(batch);
  CallPlan whole = at_once(plan(lines, {x}));
  if (whole.is_feasible()) return whole;
  const auto steps = LineSteps::of(batch, x, lines.describe({x}).output);
  if (!steps) return whole;
  const auto planned = [&](const LineSteps::Step& step) {
    return TilePass{step.text, 1, plan(step.operation, step.inputs)};
  };
  CallPlan made = in_passes(kFourSteps, {planned(steps->first()), planned(steps->second())}, whole);
  const bool is_better = made.is_feasible() || made.smallest <= whole.smallest;
  made.smallest = whole.smallest = std::min(made.smallest, whole.smallest);
  return is_better ? made : whole;
}

Tensor fft_line(const dist::CommunicatorPtr& comm, const Tensor& x, const dist::FftBatch& batch,
                const TiledOptions& options) {
  const TileOperation whole = fft_tiles(batch);
  const Header given = agree_headers(*comm, whole.text, {x}, options)[0];
  const CallPlan plan = fft_line_plan(batch, given, on_ranks(comm, options));
  Passes passes(comm, whole.text, options);
  const Header line = whole.describe({given}).output;
  const auto steps = LineSteps::of(batch, given, line);
  std::vector<std::string> ways{kAtOnce};
  if (steps) ways.emplace_back(kFourSteps);
  const std::string way = way_of(passes, plan, ways);
  if (way == kAtOnce) {
    passes.open({line});
    return passes.run({0, way, {}}, whole, {x});
  }
  passes.open({steps->middle(), line});
  const LineSteps::Step first = steps->first();
  std::vector<Tensor> inputs(first.inputs.size());
  Tensor middle;
  if (passes.left() && passes.left()->number == 1) {
    middle = passes.made(0);
  } else {
    if (comm->rank() == 0) inputs = steps->first_inputs(x);
    middle = passes.run({0, way, {}}, first.operation, inputs);
  }
  return passes.run({1, way, {}}, steps->second().operation, {middle}, steps->into_line());
}

}  // namespace cuop::executor
