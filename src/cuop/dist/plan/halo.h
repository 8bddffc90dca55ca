// The cells around each rank's block of a 2-D grid that its sweeps read (the halo), and who has
// them: several ranks when blocks are smaller than the halo is deep, corners too.
//
// Worked example: 4 x 4 over 2 x 2 ranks, a halo of one row and one column, zero beyond the grid.
// Rank 0 has [0:2, 0:2] and keeps the window [-1:3, 0:3]: row -1 is zero, row 2 comes from rank 2
// and its last cell from rank 3, column 2 from rank 1.
#pragma once

#include <vector>

#include "cuop/dist/moves.h"

namespace cuop::dist {

/// What one rank keeps besides its block, and where that lands.
struct HaloNeeds {
  std::vector<Need> needs;
  std::vector<Dims> place;  ///< for each need its first row and column in the rank's window
};

struct HaloGrid {
  std::vector<Box> blocks;  ///< of each rank; they are disjoint and cover the grid
  Shape shape;              ///< of the grid, [h, w]
  int64_t rows = 0;         ///< of the halo, on each side
  int64_t columns = 0;      ///< of the halo on each side, where columns are cut
  bool is_periodic = false;

  /// Whether no block has a part of a row. Then sweeps see the left and right edges of the grid
  /// themselves, and no columns are kept besides.
  bool has_whole_rows() const;
  /// What rank `rank` keeps, in indices of a grid without bounds: rows beyond the ends of a grid
  /// that is not periodic too, which are zero, columns there not.
  Box window(int rank) const;
  /// Of each window the cells around the block that lie in the grid, wrapped around (several times
  /// if need be) where it is periodic.
  HaloNeeds needs() const;
};

/// The cells of each rank's window, in indices of a grid without bounds, that lie in the grid,
/// wrapped around as above; of an empty window none.
HaloNeeds needs_of_windows(const std::vector<Box>& windows, const Shape& grid, bool is_periodic);

/// `has_whole_rows` of blocks alone.
bool has_whole_rows(const std::vector<Box>& blocks, const Shape& grid);

}  // namespace cuop::dist
