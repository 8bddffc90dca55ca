#include "cuop/dist/plan/multigrid_levels.h"

#include <algorithm>

namespace cuop::dist {
namespace {

/// Coarsened are axes along which cells are bound half as strongly as along the other, or more.
constexpr double kBound = 0.5;

FivePoint coarser_grid(const FivePoint& op) {
  const auto strength = [](int64_t cells, double bound) { return cells > 1 ? bound : 0.0; };
  const double down = strength(op.height, op.down), across = strength(op.width, op.across);
  const double least = kBound * std::max(down, across);
  FivePoint next = op;
  const auto coarsen = [&](int64_t& cells, double& bound) {
    const int64_t fewer = coarser(cells, op.ends);
    const double wider = coarsening(cells, fewer, op.ends);
    bound /= wider * wider;
    cells = fewer;
  };
  if (down > 0.0 && down >= least) coarsen(next.height, next.down);
  if (across > 0.0 && across >= least) coarsen(next.width, next.across);
  return without_loops(next);
}

std::vector<Box> rows_among(const std::vector<int>& ranks, int64_t height, int64_t width,
                            size_t all) {
  std::vector<Box> blocks(all, empty_box(2));
  for (size_t i = 0; i < ranks.size(); ++i) {
    const Interval rows =
        split_evenly({0, height}, static_cast<int64_t>(ranks.size()), static_cast<int64_t>(i));
    if (rows.length() > 0) {
      blocks[static_cast<size_t>(ranks[i])] = {{rows.low, 0}, {rows.high, width}};
    }
  }
  return blocks;
}

}  // namespace

std::vector<MultigridLevel> multigrid_levels(const FivePoint& op, const std::vector<Box>& blocks,
                                             int64_t shared_cells) {
  std::vector<int> ranks;
  for (size_t rank = 0; rank < blocks.size(); ++rank) {
    if (!blocks[rank].empty()) ranks.push_back(static_cast<int>(rank));
  }
  // In the order of their rows, so that little moves between levels.
  std::stable_sort(ranks.begin(), ranks.end(), [&](int a, int b) {
    return blocks[static_cast<size_t>(a)].low[0] < blocks[static_cast<size_t>(b)].low[0];
  });
  std::vector<MultigridLevel> levels{{without_loops(op), blocks}};
  while (levels.back().op.height > 1 || levels.back().op.width > 1) {
    const FivePoint next = coarser_grid(levels.back().op);
    if (next.height * next.width < shared_cells) ranks.erase(ranks.begin() + 1, ranks.end());
    levels.push_back({next, rows_among(ranks, next.height, next.width, blocks.size())});
  }
  return levels;
}

}  // namespace cuop::dist
