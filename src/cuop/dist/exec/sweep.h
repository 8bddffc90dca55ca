// A block of rows with its halo, swept again and again. Two padded copies take turns, and a third
// keeps a state to which one may return.
#pragma once

#include <functional>

#include "cuop/dist/exec/exchange.h"
#include "cuop/dist/plan/stencil_plan.h"

namespace cuop::dist {

class SweptRows {
 public:
  /// `block` is this rank's part of the grid; `blocks` those of all ranks. `halo` rows are kept
  /// above and below. Collective from here on: all ranks make the same calls.
  SweptRows(Communicator& comm, const Tensor& block, const std::vector<Box>& blocks,
            const Shape& grid, int64_t halo, bool is_periodic);

  /// Fetches the halo rows of the current values.
  void exchange_halo();

  /// Sweeps the block and `margin` rows above and below (cut at the ends of a grid that is not
  /// periodic): `sweep(padded, first, out)` computes `out`, whose first row is row `first` of the
  /// block (negative in the halo), from `padded`, which has `radius` rows more on both sides.
  using Sweep = std::function<void(const Tensor& padded, int64_t first, const Tensor& out)>;
  void sweep(int64_t radius, int64_t margin, const Sweep& work);

  /// Keeps the present values, halo included, until the next call; `restore` returns to them.
  void keep();
  void restore();

  bool is_empty() const { return rows_ == 0; }
  /// Rows of the block's numbering that lie in the grid.
  Interval in_grid() const { return allowed_; }
  /// Rows [low, high) of the block's numbering, negative in the halo.
  Tensor rows(int64_t low, int64_t high) const { return rows_of(current_, low, high); }
  /// The block with `radius` rows more on both sides.
  Tensor padded(int64_t radius) const;
  /// The block.
  Tensor block() const { return padded(0); }

 private:
  Tensor rows_of(const Tensor& padded, int64_t low, int64_t high) const;
  Tensor fresh() const;

  Communicator& comm_;
  int64_t rows_;
  int64_t width_ = 0;
  int64_t halo_;
  Interval allowed_;  ///< rows of the block's numbering that lie in the grid
  Box box_;
  DType dtype_;
  Device device_;
  HaloNeeds halo_needs_;
  RankMoves moves_;
  Tensor current_;
  Tensor next_;  ///< made when it is first needed, as the next two
  Tensor kept_;
  Tensor spare_;
  int ahead_ = 0;  ///< sweeps since this rank has waited for its GPU
};

}  // namespace cuop::dist
