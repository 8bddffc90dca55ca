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

/// A part of a sweep over a block: rows, of which some columns are to be made.
struct SweptPart {
  Tensor padded;             ///< the present values, of more rows than `out` on both sides
  Tensor out;                ///< for the next ones, of the same columns
  int64_t first = 0;         ///< the row of the block that is `out`'s first; negative in the halo
  int64_t first_column = 0;  ///< the column that is, of those that are kept
  Interval made;             ///< columns of `out` that are to be made; the others are left alone
  bool is_beside = false;    ///< other columns of these rows were made in an earlier part
};

class SweptBlock {
 public:
  /// `block` is this rank's of the blocks of `grid`. A GPU sweeps while the halo is on its way
  /// where `is_overlapped`. Collective from here on: all ranks make the same calls.
  SweptBlock(Communicator& comm, const Tensor& block, const HaloGrid& grid,
             bool is_overlapped = false);

  /// Fetches the halo of the current values.
  void exchange_halo();

  /// Sweeps the block's rows and `margin` rows above and below (cut at the ends of a grid that is
  /// not periodic), all columns that are kept, by one call of `work`, whose `padded` has `radius`
  /// rows more on both sides. Of columns that are kept beside the block those nearest to their cut
  /// edge lack neighbours and become wrong, as many more with each sweep as it reaches columns.
  using Sweep = std::function<void(const SweptPart&)>;
  void sweep(int64_t radius, int64_t margin, const Sweep& work);
  /// Fetches the halo and sweeps; a cell reads `column_radius` columns to its left and right. Where
  /// that is overlapped `work` is called up to five times: for what needs no halo, and when it is
  /// there for the rows above and below and the columns to the left and right of that.
  void exchange_and_sweep(int64_t radius, int64_t column_radius, int64_t margin, const Sweep& work);

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
  /// What needs no halo.
  struct Inner {
    Interval rows;     ///< of the block's numbering
    Interval columns;  ///< of those that are kept
    Interval read;     ///< columns that they need, all of the block's own
  };

  Tensor rows_of(const Tensor& padded, int64_t low, int64_t high) const;
  Inner inner_of(int64_t radius, int64_t column_radius) const;
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
  bool is_periodic_;
  int64_t width_;     ///< of the grid
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
