#include "cuop/executor/grid_fft.h"

#include <algorithm>
#include <optional>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/plan/four_step_plan.h"
#include "cuop/executor/root_arrays.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/fft/twiddle.h"
#include "cuop/ops/index/view.h"

namespace cuop::executor {
namespace {

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

}  // namespace

std::vector<TilePass> fft2d_passes(const Header& grid, FftNorm norm, const PlanPass& plan) {
  if (grid.shape.ndim() != 2) {
    throw ShapeError(cat("fft2d: a grid of 2 dimensions is needed, given ", grid.shape));
  }
  const TileOperation rows = lines_along(1, norm);
  const TilePlan at_once = plan(whole_grid(norm), {grid});
  const TilePlan first = plan(rows, {grid});
  const TilePlan second = plan(lines_along(0, norm), {rows.describe({grid}).output});
  if (at_once.is_feasible && at_once.seconds <= first.seconds + second.seconds) {
    return {{"at once", 1, at_once}};
  }
  return {{"rows", 1, first}, {"columns", 1, second}};
}

Tensor fft2d_grid(const dist::CommunicatorPtr& comm, const Tensor& x, FftNorm norm,
                  const TiledOptions& options) {
  const std::vector<Header> headers = agree_headers(*comm, "fft2d", {x}, options);
  const auto plan = [&](const TileOperation& operation, const std::vector<Header>& inputs) {
    return plan_tiled(comm, operation, inputs, options);
  };
  if (fft2d_passes(headers[0], norm, plan).size() == 1) {
    return run_tiled(comm, whole_grid(norm), {x}, options);
  }
  const Tensor result = run_tiled(comm, lines_along(1, norm), {x}, options);
  // In place: tiles are disjoint.
  return run_tiled(comm, lines_along(0, norm), {result}, options, result);
}

Tensor fft_line(const dist::CommunicatorPtr& comm, const Tensor& x, const dist::FftBatch& batch,
                const TiledOptions& options) {
  const std::vector<Header> headers = agree_headers(*comm, "fft", {x}, options);
  const TileOperation whole = fft_tiles(batch);
  const TilePlan at_once = plan_tiled(comm, whole, headers, options);
  const bool is_complex_line = headers[0].shape.ndim() == 1 && (batch.kind == dist::FftKind::kFft ||
                                                                batch.kind == dist::FftKind::kIfft);
  const int64_t given = is_complex_line ? headers[0].shape[0] : 0, n = batch.n.value_or(given);
  const auto factors = is_complex_line ? dist::four_step_factors(n, 1) : std::nullopt;
  if (at_once.is_feasible || !factors) return run_tiled(comm, whole, {x}, options);
  const auto [n1, n2] = *factors;
  const Shape grid{n1, n2};
  const Header line = whole.describe(headers).output;
  Tensor from, into, mid;
  if (comm->rank() == 0) {
    from = x;
    if (n != given) {
      const int64_t kept = std::min(n, given);
      from = zeros({n}, x.dtype());
      copy_into(slice(from, 0, 0, kept), slice(to_device(x, kCpu), 0, 0, kept));
    }
    from = reshape(from, grid);
    mid = new_result(*comm, {grid, line.dtype});
    into = new_result(*comm, line);
  }
  // x[j1 n2 + j2] -> mid[k1, j2] -> y[k2 n1 + k1], which is [k1, k2] of the line's transpose.
  run_tiled(comm, with_twiddles({batch.kind, {}, 0, batch.norm}, n), {from}, options, mid);
  const Tensor transposed = into.is_defined() ? transpose(reshape(into, {n2, n1})) : Tensor();
  run_tiled(comm, fft_tiles({batch.kind, {}, 1, batch.norm}), {mid}, options, transposed);
  return into;
}

}  // namespace cuop::executor
