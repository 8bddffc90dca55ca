// Internal: how the share of one device is cut into tiles. A search over the cuts of its longest
// dimensions and the order of the loops, by predicted time within the memory.
#pragma once

#include <cstdint>
#include <vector>

#include "cuop/core/box.h"
#include "cuop/executor/tile_problem.h"

namespace cuop::executor {

/// Dimensions and steps whose cuts are searched; others are whole, or cut all through where nothing
/// else fits.
inline constexpr size_t kSearched = 3;

/// Of dimensions in falling order of their length the outermost becomes one that is searched: its
/// pieces are the longest stretches of memory. (A step is no dimension, and the greatest number.)
void search_outermost(std::vector<int>& axes);

/// What one device has to make.
struct Share {
  Box box;
  Interval range;
  std::vector<int> readers = {};  ///< of each input, devices that bring what they read together
};

/// Cuts of a share: the dimensions of the output, then the steps.
using Cuts = std::vector<int64_t>;

/// What cuts cost a device.
struct CutCosts {
  int64_t memory = 0;
  int64_t uploaded = 0;  ///< from the host
  int64_t shared = 0;    ///< from other devices
  int64_t downloaded = 0;
  double gathered = 0;   ///< seconds that uploads take beside their bytes, as they lie in pieces
  double scattered = 0;  ///< and downloads
  double compute = 0;
  double seconds = 0;
};

struct FoundCuts {
  Cuts cuts;
  std::vector<int> order;
  CutCosts costs;
  bool is_feasible = false;
  int64_t smallest = 0;  ///< memory of the finest cuts
};
/// Those of least predicted time; the finest, which need least memory, where they do not fit
/// either.
FoundCuts best_cuts(const TileProblem& problem, const TileMachine& machine, const Share& share,
                    int64_t least_tiles);

/// One of so many parts of an interval, of whole grains where there are several for each. More
/// parts are never longer, and the first is the longest.
Interval cut(Interval whole, int64_t parts, int64_t index);

/// The product, or the largest number.
int64_t product_of(const std::vector<int64_t>& counts);

}  // namespace cuop::executor
