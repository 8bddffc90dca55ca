// Making the tiles of one rank: their inputs come to the device while the tile before is computed,
// and results go back while the next is. Where memory turns out short, tiles are halved and the
// work goes on.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "cuop/executor/process_boxes.h"
#include "cuop/executor/resources.h"
#include "cuop/executor/root_arrays.h"
#include "cuop/executor/tile_plan.h"
#include "cuop/executor/tile_problem.h"
#include "cuop/memory/limited.h"

namespace cuop::executor {

/// Where a rank's tiles are made, and of what memory.
struct TileSite {
  Device device = kCpu;
  std::shared_ptr<memory::LimitedResource> memory;  ///< of which tiles are made, and what they read
  /// Bytes that can be used of the device now, looked at now and then; a tile that needs more is
  /// not begun. Without it memory is short when it is refused.
  std::function<int64_t()> available = {};
  /// By which its GPU shares inputs with others, and with how many of each; null: with none.
  std::shared_ptr<SharedBoxes> boxes = {};
  std::vector<Reader> readers = {};
  /// After each step: steps done and steps in all, as far as they are known.
  std::function<void(int64_t done, int64_t all)> on_progress = {};
};

/// What came of it.
struct TileRun {
  int64_t halvings = 0;  ///< how often memory was short
  int64_t shared = 0;    ///< bytes that came from other devices
};

/// Where a tile goes: its box of the output, or of a sum over all ranks.
using TakeTile = std::function<void(const Box& output, const Tensor& tile)>;

/// Memory for the boxes of each input that such tiles share, where its readers are so many.
std::vector<BoxRoom> rooms_for(const Tiling& tiling, const std::vector<Tile>& tiles,
                               const std::vector<Reader>& readers);

/// Makes `tiles`, which read from `arrays`. MemoryError when the smallest tile does not fit.
TileRun run_tiles(const Tiling& tiling, std::vector<Tile> tiles, const RootArrays& arrays,
                  const TileSite& site, const TakeTile& take);

}  // namespace cuop::executor
