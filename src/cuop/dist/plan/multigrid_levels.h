// The grids of a multigrid method, from the given one to one cell, and who has their rows.
//
// Worked example: 6 x 100, zero ends. 6 x 100 -> 3 x 50 -> 1 x 25 -> 1 x 12 -> 1 x 6 -> 1 x 3 -> 1
// x 1. Sizes need not be odd: a coarser axis has cells of its own places, somewhat more than twice
// apart at most, between which values are interpolated. An axis whose cells are already further
// apart than those of the other waits until they are not (semi-coarsening).
#pragma once

#include <vector>

#include "cuop/core/box.h"
#include "cuop/core/five_point.h"

namespace cuop::dist {

struct MultigridLevel {
  FivePoint op;
  std::vector<Box> blocks;  ///< of whole rows, of each rank; empty where it has none
};

/// `blocks` are those of the given grid, the first level. Later levels are split evenly among the
/// ranks that have rows of it, or, from the first of fewer than `shared_cells` cells on, lie on the
/// first of them.
std::vector<MultigridLevel> multigrid_levels(const FivePoint& op, const std::vector<Box>& blocks,
                                             int64_t shared_cells = 0);

}  // namespace cuop::dist
