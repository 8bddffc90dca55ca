#include "cuop/executor/grid_fft.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/plan/four_step_plan.h"
#include "cuop/executor/passes.h"
#include "cuop/executor/root_arrays.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/fft/twiddle.h"
#include "cuop/ops/index/arrange.h"
#include "cuop/ops/index/view.h"

namespace cuop::executor {
namespace {

constexpr const char* kAtOnce = "at once";
constexpr const char* kRowsAndColumns = "rows and columns";
constexpr const char* kFourSteps = "four steps";

TileOperation whole_grid(FftNorm norm) { return fft2d_tiles({{}, {-2, -1}, {norm, false}}); }
TileOperation lines_along(int64_t axis, FftNorm norm) {
  return fft_tiles({dist::FftKind::kFft, {}, axis, norm});
}

/// Columns of a grid along which it was transformed, times exp(-+2 pi i j2 k1 / n).
TileOperation with_twiddles(const dist::FftBatch& batch, int64_t n) {
  TileOperation made = fft_tiles(batch);
  made.text += ", twiddled";
  made.describe = [plain = made.describe, batch, n](const std::vector<Header>& inputs) {
    Tiling tiling = plain(inputs);
    tiling.scratch = [columns = tiling.scratch, n](const Box& output, Interval step) {
      return columns(output, step) + spectral::twiddle_bytes(n);
    };
    tiling.make = [columns = tiling.make, n, is_inverse = batch.kind == dist::FftKind::kIfft](
                      const std::vector<Part>& parts, const Box& output, Interval step) {
      const Tensor lines = columns(parts, output, step);
      spectral::multiply_by_twiddles(lines, {n, 0, output.low[0], 1, output.low[1], is_inverse});
      return lines;
    };
    return tiling;
  };
  return made;
}

/// Rows of the spectrum X of n1 n2 real numbers, [k1, k2] being X[k1 + n1 k2], of which the first
/// n1 / 2 + 1 are there, go into the first half of it: where they are in it as they are, else to
/// their conjugates, X[n - k] = conj(X[k]), which are [n1 - k1, n2 - 1 - k2].
void put_half(const Tensor& half, int64_t n1, int64_t n2, const Box& box, const Tensor& tile) {
  const Tensor rows = to_device(tile, kCpu);
  const Interval at = box.interval(0);
  const int64_t full = half.size() / n1, rest = half.size() % n1;  // whole and begun runs of n1
  const Tensor runs = reshape(slice(half, 0, 0, full * n1), {full, n1});
  const Tensor run = slice(half, 0, full * n1, half.size());
  const auto within = [&](Interval wanted) {  // its rows of the tile
    return slice(rows, 0, wanted.low - at.low, wanted.high - at.low);
  };
  copy_into(transpose(slice(runs, 1, at.low, at.high)), slice(rows, 1, 0, full));
  const Interval begun{at.low, std::min(at.high, rest)};
  if (begun.high > begun.low) {
    copy_into(slice(run, 0, begun.low, begun.high), select(within(begun), 1, full));
  }
  const auto mirrored = [&](Interval wanted) {  // the places of their conjugates
    return Interval{n1 - wanted.high + 1, n1 - wanted.low + 1};
  };
  const Interval other{std::max<int64_t>(at.low, 1), std::min(at.high, (n1 - 1) / 2 + 1)};
  if (other.high <= other.low) return;
  const Interval to = mirrored(other);
  const Tensor into = transpose(slice(runs, 1, to.low, to.high));
  conj(flip(slice(within(other), 1, n2 - full, n2)), &into);
  const Interval late{std::max(other.low, n1 - rest + 1), other.high};
  if (late.high <= late.low) return;
  const Interval end = mirrored(late);
  const Tensor behind = slice(run, 0, end.low, end.high);
  conj(flip(select(within(late), 1, n2 - 1 - full)), &behind);
}

/// One line as a grid of n1 rows of n2 elements.
struct FourSteps {
  dist::FftBatch batch;
  Header x;     ///< the line that is given
  Header line;  ///< the result
  int64_t n = 0, n1 = 1, n2 = 1;

  bool is_real() const { return batch.kind == dist::FftKind::kRfft; }
  int64_t given() const { return x.shape[0]; }
  Header grid() const { return {{n1, n2}, x.dtype}; }
  /// Between the passes.
  Header middle() const { return {{is_real() ? n1 / 2 + 1 : n1, n2}, line.dtype}; }

  TileOperation columns() const { return with_twiddles({batch.kind, {}, 0, batch.norm}, n); }
  TileOperation rows() const {
    const dist::FftKind kind = is_real() ? dist::FftKind::kFft : batch.kind;
    TileOperation made = fft_tiles({kind, {}, 1, batch.norm});
    if (!is_real()) return made;
    made.text += ", half of them";
    made.describe = [*this, plain = made.describe](const std::vector<Header>& inputs) {
      Tiling tiling = plain(inputs);
      tiling.place = {line,
                      [n1 = n1, n2 = n2](const Tensor& half, const Box& box, const Tensor& tile) {
                        put_half(half, n1, n2, box, tile);
                      }};
      return tiling;
    };
    return made;
  }
  /// x[j1 n2 + j2] -> middle [k1, j2] -> y[k2 n1 + k1], which is [k1, k2] of the line's transpose.
  PassSettings into_line() const {
    PassSettings settings;
    if (is_real()) return settings;  // whose rows find their places themselves
    settings.view = [shape = Shape{n2, n1}](const Tensor& array) {
      return transpose(reshape(array, shape));
    };
    return settings;
  }
};

/// Nothing for what is no line, and for a length without factors.
std::optional<FourSteps> four_steps(const dist::FftBatch& batch, const Header& x,
                                    const Header& line) {
  if (x.shape.ndim() != 1 || batch.kind == dist::FftKind::kIrfft) return std::nullopt;
  const int64_t n = batch.n.value_or(x.shape[0]);
  const auto factors = dist::four_step_factors(n, 1);
  if (!factors) return std::nullopt;
  return FourSteps{batch, x, line, n, factors->n1, factors->n2};
}

/// The line of n elements, cut or padded with zeros.
Tensor of_length(const Tensor& x, int64_t n) {
  if (x.size() == n) return x;
  const Tensor line = zeros({n}, x.dtype());
  const int64_t kept = std::min(n, x.size());
  copy_into(slice(line, 0, 0, kept), slice(to_device(x, kCpu), 0, 0, kept));
  return line;
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
  const auto steps = four_steps(batch, x, lines.describe({x}).output);
  if (!steps) return whole;
  CallPlan made = in_passes(kFourSteps,
                            {{"columns", 1, plan(steps->columns(), {steps->grid()})},
                             {"rows", 1, plan(steps->rows(), {steps->middle()})}},
                            whole);
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
  const auto steps = four_steps(batch, given, line);
  std::vector<std::string> ways{kAtOnce};
  if (steps) ways.emplace_back(kFourSteps);
  const std::string way = way_of(passes, plan, ways);
  if (way == kAtOnce) {
    passes.open({line});
    return passes.run({0, way, {}}, whole, {x});
  }
  passes.open({steps->middle(), line});
  const bool is_root = comm->rank() == 0;
  Tensor middle;
  if (passes.left() && passes.left()->number == 1) {
    middle = passes.made(0);
  } else {
    const Tensor grid = is_root ? reshape(of_length(x, steps->n), steps->grid().shape) : Tensor();
    middle = passes.run({0, way, {}}, steps->columns(), {grid});
  }
  return passes.run({1, way, {}}, steps->rows(), {middle}, steps->into_line());
}

}  // namespace cuop::executor
