#include "cuop/dist/plan/halo.h"

#include <algorithm>
#include <array>

#include "cuop/core/divide_up.h"

namespace cuop::dist {
namespace {

/// A piece of an axis without bounds that lies in one copy of the grid.
struct Stretch {
  Interval inside;    ///< the indices in the grid
  int64_t place = 0;  ///< of the first one, counted from the window's first index
};

/// Of `wanted` along an axis of `size` indices of which copy number `wrap` lies at
/// [wrap * size, (wrap + 1) * size).
std::vector<Stretch> stretches(Interval wanted, int64_t window, int64_t size, bool is_periodic) {
  std::vector<Stretch> found;
  for (int64_t low = wanted.low; low < wanted.high;) {
    const int64_t wrap = low >= 0 ? low / size : -divide_up(-low, size);
    const int64_t high = std::min(wanted.high, (wrap + 1) * size);
    if (is_periodic || wrap == 0) {
      found.push_back({{low - wrap * size, high - wrap * size}, low - window});
    }
    low = high;
  }
  return found;
}

/// The cells of [rows, columns] that lie in the grid, of a window that begins at `corner`.
void add_needs(HaloNeeds& result, int rank, const std::array<Interval, 2>& wanted,
               const Dims& corner, const Shape& grid, bool is_periodic) {
  for (const Stretch& down : stretches(wanted[0], corner[0], grid[0], is_periodic)) {
    for (const Stretch& across : stretches(wanted[1], corner[1], grid[1], is_periodic)) {
      result.needs.push_back(
          {rank, {{down.inside.low, across.inside.low}, {down.inside.high, across.inside.high}}});
      result.place.push_back({down.place, across.place});
    }
  }
}

}  // namespace

bool has_whole_rows(const std::vector<Box>& blocks, const Shape& grid) {
  return std::all_of(blocks.begin(), blocks.end(), [&](const Box& block) {
    return block.empty() || block.interval(1).length() == grid[1];
  });
}

bool HaloGrid::has_whole_rows() const { return dist::has_whole_rows(blocks, shape); }

Box HaloGrid::window(int rank) const {
  Box window = blocks[static_cast<size_t>(rank)];
  if (window.empty()) return window;
  window.low[0] -= rows;
  window.high[0] += rows;
  if (has_whole_rows()) return window;
  window.low[1] -= columns;
  window.high[1] += columns;
  if (is_periodic) return window;
  window.low[1] = std::max<int64_t>(window.low[1], 0);
  window.high[1] = std::min(window.high[1], shape[1]);
  return window;
}

HaloNeeds HaloGrid::needs() const {
  HaloNeeds result;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const Box& block = blocks[i];
    if (block.empty()) continue;
    const int rank = static_cast<int>(i);
    const Box around = window(rank);
    const auto add = [&](Interval wanted_rows, Interval wanted_columns) {
      add_needs(result, rank, {wanted_rows, wanted_columns}, around.low, shape, is_periodic);
    };
    const Interval all_columns = around.interval(1), own_rows = block.interval(0);
    add({around.low[0], own_rows.low}, all_columns);
    add({own_rows.high, around.high[0]}, all_columns);
    add(own_rows, {all_columns.low, block.low[1]});
    add(own_rows, {block.high[1], all_columns.high});
  }
  return result;
}

HaloNeeds needs_of_windows(const std::vector<Box>& windows, const Shape& grid, bool is_periodic) {
  HaloNeeds result;
  for (size_t i = 0; i < windows.size(); ++i) {
    if (windows[i].empty()) continue;
    add_needs(result, static_cast<int>(i), {windows[i].interval(0), windows[i].interval(1)},
              windows[i].low, grid, is_periodic);
  }
  return result;
}

}  // namespace cuop::dist
