// Rows that ranks read of a grid whose rows lie with others: what a change of size needs.
#pragma once

#include <vector>

#include "cuop/dist/exec/exchange.h"
#include "cuop/dist/plan/halo.h"

namespace cuop::dist {

class RowWindow {
 public:
  /// `blocks[r]` are the rows that rank r has of the grid, `wanted[r]` those that it reads, in the
  /// numbering of a grid without bounds. `shape` is the grid's.
  RowWindow(Communicator& comm, const std::vector<Box>& blocks, const std::vector<Interval>& wanted,
            const Shape& shape, bool is_periodic, DType dtype, Device device);

  /// This rank's window of the grid of which it has `block`: row-major, with zeros outside of a
  /// grid that is not periodic; undefined where it wants none. It may be a view of the block, and
  /// is overwritten by the next call. Collective.
  Tensor fetch(const Tensor& block);

 private:
  Communicator& comm_;
  Box own_, window_;
  Device device_;
  bool is_own_ = false;  ///< all that is wanted is this rank's own
  HaloNeeds needs_;
  RankMoves moves_;
  Tensor made_;
};

}  // namespace cuop::dist
