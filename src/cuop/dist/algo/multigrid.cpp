#include "cuop/dist/algo/multigrid.h"

#include <algorithm>

#include "cuop/ops/create/create.h"

namespace cuop::dist {
namespace {

/// Sweeps on the way down and up. 2 and 1 reduce the residual by 7 to 10 at the cost of three
/// sweeps, which is more for the time than 1 and 1 (5 to 9) and 2 and 2 (10 to 15).
constexpr int kDown = 2, kUp = 1;

/// The rows that a rank reads to make rows [made.low, made.high) of the result of a matrix.
Interval rows_read(const Bands& bands, const Box& made) {
  if (made.empty()) return {};
  const auto from = bands.first.begin() + made.low[0], to = bands.first.begin() + made.high[0];
  return {*std::min_element(from, to), *std::max_element(from, to) + bands.taps};
}

std::vector<Interval> rows_read(const Bands& bands, const std::vector<Box>& blocks) {
  std::vector<Interval> rows;
  for (const Box& block : blocks) rows.push_back(rows_read(bands, block));
  return rows;
}

}  // namespace

Multigrid::Multigrid(Communicator& comm, const FivePoint& op, const std::vector<Box>& blocks,
                     int64_t shared_cells, DType dtype, Device device) {
  const std::vector<MultigridLevel> levels = multigrid_levels(op, blocks, shared_cells);
  for (const MultigridLevel& level : levels) {
    const auto passes = static_cast<int64_t>(passes_of(level.op, std::max(kDown, kUp)).size());
    grids_.emplace_back(comm, level.op, level.blocks, passes, dtype, device);
  }
  for (size_t i = 0; i + 1 < levels.size(); ++i) {
    transfers_.push_back(transfer(comm, levels[i], levels[i + 1], dtype, device));
  }
}

Multigrid::Transfer Multigrid::transfer(Communicator& comm, const MultigridLevel& fine,
                                        const MultigridLevel& coarse, DType dtype, Device device) {
  const AxisEnds ends = fine.op.ends;
  const Bands down = restriction(fine.op.height, coarse.op.height, ends);
  const Bands up = interpolation(fine.op.height, coarse.op.height, ends);
  const auto rank = static_cast<size_t>(comm.rank());
  const auto own_rows = [&](const Bands& bands, const Box& made) {
    return band_table(bands, made.low[0], made.high[0], rows_read(bands, made).low, dtype, device);
  };
  const auto columns = [&](const Bands& bands) {
    return band_table(bands, 0, bands.rows(), 0, dtype, device);
  };
  const bool is_periodic = fine.op.is_periodic();
  const Box& own = fine.blocks[rank];
  return {RowWindow(comm, fine.blocks, rows_read(down, coarse.blocks),
                    {fine.op.height, fine.op.width}, is_periodic, dtype, device),
          RowWindow(comm, coarse.blocks, rows_read(up, fine.blocks),
                    {coarse.op.height, coarse.op.width}, is_periodic, dtype, device),
          own_rows(down, coarse.blocks[rank]),
          columns(restriction(fine.op.width, coarse.op.width, ends)),
          own_rows(up, own),
          columns(interpolation(fine.op.width, coarse.op.width, ends)),
          own.empty() ? Tensor() : empty(own.shape(), dtype, device)};
}

void Multigrid::cycle(size_t number) {
  RowEquation& grid = grids_[number];
  // Coarser grids begin with zeros, in the halo too.
  if (number == 0) grid.fetch_halo();
  grid.relax(passes_of(grid.op(), kDown), 1.0, 1);
  if (number + 1 == grids_.size()) return;

  Transfer& between = transfers_[number];
  RowEquation& coarse = grids_[number + 1];
  grid.residual(between.residual);
  const Tensor residual = between.fine.fetch(between.residual);
  if (!coarse.is_empty()) {
    resample_rows(residual, between.rows_down, between.columns_down, coarse.b());
  }
  coarse.fetch_rhs();
  coarse.clear();
  cycle(number + 1);
  const Tensor correction = between.coarse.fetch(coarse.u());
  if (!grid.is_empty()) {
    resample_rows(correction, between.rows_up, between.columns_up, grid.u(), true);
  }
  grid.fetch_halo();
  grid.relax(passes_of(grid.op(), kUp), 1.0, 0);
}

}  // namespace cuop::dist
