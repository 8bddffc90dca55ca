// Internal: Jacobi's sweeps over the grid of one rank, in batches of as many as one halo serves.
#pragma once

#include <deque>
#include <vector>

#include "cuop/dist/algo/poisson_internal.h"
#include "cuop/dist/algo/stencil.h"
#include "cuop/dist/exec/norms.h"
#include "cuop/dist/exec/sweep.h"

namespace cuop::dist {

class JacobiSweeps {
 public:
  /// Of at most `depth` sweeps a batch. `rhs` lies like the grid, in disjoint blocks. A batch may
  /// be begun while `ahead` others wait for somebody to look at their norms. Collective from here
  /// on.
  JacobiSweeps(const DistTensor& grid, const DistTensor& rhs, int64_t depth, bool is_overlapped,
               int64_t ahead, const JacobiOptions& options);

  /// Fetches the halo and makes `count` sweeps, of which the last `measured` leave their norms;
  /// where none does nobody waits for the batch.
  void begin(int64_t count, int64_t measured);
  /// Batches that have left norms and have not been dropped.
  int64_t waiting() const { return static_cast<int64_t>(waiting_.size()); }

  // Of the oldest that waits:
  /// The sweeps that were made before it, and its own.
  int64_t first() const { return waiting_.front().first; }
  int64_t count() const { return waiting_.front().count; }
  /// The norms over the whole grid of the updates that were measured; where rows are cut they may
  /// be off by the rounding of their sums (`norm_slack`).
  std::vector<double> norms() { return waiting_.front().slot->reduction.wait(); }
  /// The norm of sweep number `wanted`, from 1 on, as it is where rows are whole. Costs as much as
  /// the sweeps until there, and brings the grid into rows.
  double exact_norm(int64_t wanted);
  /// Makes the grid that of sweep number `wanted`; what was begun later is gone.
  void end_at(int64_t wanted);
  /// Goes on without it.
  void drop();
  /// Goes back to where it began, after `norms`: that and what was begun later is gone. Returns the
  /// sweeps that were made before it.
  int64_t rewind();

  /// By how much norms may be off, relative to themselves: 0 where rows are whole.
  double norm_slack() const;
  /// The grid as it is now.
  DistTensor grid() const;
  /// 2-norm of rhs - Laplace(u) for that.
  double residual_norm() const { return norms_.residual(grid()); }

 private:
  /// Where a batch leaves its norms.
  struct Slot {
    NormReduction reduction;
    Tensor squares;  ///< sums of squares of measured updates, [sweep, row of the block]
  };
  struct Batch {
    int64_t first = 0;
    int64_t count = 0;
    SweptBlock::State before = {};  ///< kept where one may return to it
    Slot* slot = nullptr;
  };

  HaloGrid with_halo(int64_t rows, int64_t columns) const;
  /// `wanted` of `count` sweeps: of rows beyond the block as many as the sweeps that follow read.
  /// The last `measured` leave their squares in `slot`. Fetches the halo first if `is_new`.
  void sweep(int64_t wanted, int64_t count, int64_t measured, const Slot* slot, bool is_new);
  /// Of sweeps of which the first is number `at` of those that are measured.
  static void keep_norms(const Tensor& norms, const SweptPart& part, int64_t at,
                         const Tensor& squares);

  DistTensor given_;  ///< the grid at first, whose parts are taken by others of the same blocks
  JacobiOptions options_;
  PoissonNorms norms_;
  SweptBlock grid_;
  SweptBlock rhs_;
  std::deque<Slot> slots_;  ///< used in turns
  size_t turn_ = 0;
  std::deque<Batch> waiting_;
  int64_t begun_ = 0;  ///< sweeps
};

}  // namespace cuop::dist
