// A block of a 2-D grid with its halo, swept again and again. Two padded copies take turns; states
// that are kept have copies of their own.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "cuop/backend/runtime.h"
#include "cuop/dist/exec/exchange.h"
#include "cuop/dist/plan/halo.h"

namespace cuop::dist {

class SweptBlock {
 public:
  /// `block` is this rank's of the blocks of `grid`. A GPU sweeps while the halo is on its way
  /// where `is_overlapped`, which takes whole rows. Collective from here on: all ranks make the
  /// same calls.
  SweptBlock(Communicator& comm, const Tensor& block, const HaloGrid& grid,
             bool is_overlapped = false);

  /// Fetches the halo of the current values.
  void exchange_halo();

  /// Sweeps the block's rows and `margin` rows above and below (cut at the ends of a grid that is
  /// not periodic), all columns that are kept: `sweep(padded, first, out)` computes `out`, whose
  /// first row is row `first` of the block (negative in the halo), from `padded`, which has
  /// `radius` rows more on both sides. Of columns that are kept beside the block those nearest to
  /// their cut edge lack neighbours and become wrong, as many more with each sweep as it reaches
  /// columns.
  using Sweep = std::function<void(const Tensor& padded, int64_t first, const Tensor& out)>;
  void sweep(int64_t radius, int64_t margin, const Sweep& work);
  /// Fetches the halo and sweeps. Where that is overlapped `work` is called up to three times: for
  /// the rows that need no halo, and when it is there for those above and below them.
  void exchange_and_sweep(int64_t radius, int64_t margin, const Sweep& work);

  /// The values at one moment, halo included; undefined where the block is empty.
  using State = Tensor;
  /// The present ones, which no sweep overwrites until they are released.
  State keep();
  void release(const State& kept);
  /// Returns to a state that is kept, and stays so.
  void restore(const State& kept);

  bool is_empty() const { return box_.empty(); }
  /// Whether rows have all their columns; else the edges of `rows` are none of the grid's, except
  /// where a grid that is not periodic ends there.
  bool has_whole_rows() const { return has_whole_rows_; }
  /// Rows of the block's numbering that lie in the grid.
  Interval in_grid() const { return allowed_; }
  /// The block's columns among those that are kept.
  Interval own_columns() const;
  /// Rows [low, high) of the block's numbering, negative in the halo, with all columns kept.
  Tensor rows(int64_t low, int64_t high) const { return rows_of(current_, low, high); }
  /// The block's rows with `radius` more on both sides.
  Tensor padded(int64_t radius) const;
  /// The block.
  Tensor block() const;

 private:
  Tensor rows_of(const Tensor& padded, int64_t low, int64_t high) const;
  Tensor fresh();
  /// Of the block's numbering the rows that a sweep with this margin makes.
  Interval swept_rows(int64_t margin) const;
  /// Makes other values the present ones; the memory of those until now is free unless kept.
  void replace(const Tensor& values);
  /// After a sweep: the host does not run further ahead of a GPU than that.
  void limit_lead();

  Communicator& comm_;
  Box box_;     ///< of the grid
  Box window_;  ///< that is kept
  bool has_whole_rows_;
  int64_t halo_;      ///< rows
  Interval allowed_;  ///< rows of the block's numbering that lie in the grid
  DType dtype_;
  Device device_;
  HaloNeeds halo_needs_;
  RankMoves moves_;
  Tensor current_;
  std::vector<Tensor> kept_;
  std::vector<Tensor> idle_;
  std::unique_ptr<backend::OwnedStream> aside_;  ///< of halos that are overlapped
  int ahead_ = 0;                                ///< sweeps since this rank has waited for its GPU
};

}  // namespace cuop::dist
