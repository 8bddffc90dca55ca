// Internal: A u = b for the five-point operator A on blocks of whole rows, of one rank.
#pragma once

#include <vector>

#include "cuop/dist/exec/sweep.h"
#include "cuop/ops/poisson/row_sweeps.h"

namespace cuop::dist {

class RowEquation {
 public:
  /// With a halo that serves up to `passes` passes and what reads their results. u and b are zero.
  RowEquation(Communicator& comm, const FivePoint& op, const std::vector<Box>& blocks,
              int64_t passes, DType dtype, Device device);

  const FivePoint& op() const { return op_; }
  const std::vector<Box>& blocks() const { return blocks_; }
  bool is_empty() const { return u_.is_empty(); }
  /// This rank's rows, maybe none. Who writes to u calls `fetch_halo` before the
  /// next pass, who writes to b `fetch_rhs`.
  Tensor u() const { return is_empty() ? none_ : u_.block(); }
  Tensor b() const { return is_empty() ? none_ : b_.block(); }
  /// u = 0, halo included.
  void clear();
  void fetch_halo() { u_.exchange_halo(); }
  void fetch_rhs() { b_.exchange_halo(); }

  /// A pass for each colour, at once on the halo. `more` are rows of it, 0 or 1, that are as they
  /// should be afterwards. The halo must be fresh.
  void relax(const std::vector<int>& colours, double omega, int64_t more);
  /// b - A u into `out`, which may be undefined; the sums of its squares, row by row. Reads one row
  /// of the halo. An empty tensor where this rank has no rows.
  Tensor residual(const Tensor& out) const;
  /// A u into `out`, in the same way.
  void apply(const Tensor& out) const;

 private:
  FivePoint op_;
  std::vector<Box> blocks_;
  int64_t first_, height_;  ///< of this rank's rows
  int64_t halo_;
  Device device_;
  Tensor none_;
  SweptBlock u_, b_;
};

/// `sweeps` times the colours of a sweep.
std::vector<int> passes_of(const FivePoint& op, int sweeps);

/// A number of which every rank has a part for each of its rows (float64 [rows], row by row), in a
/// tensor of no dimensions where the rows lie: the true sum rounded once, so the same bits whoever
/// has which rows. Collective; of a GPU work of its current stream.
Tensor total_of_rows(Communicator& comm, const Tensor& sums, const std::vector<Box>& blocks);
/// On the host, which waits for it.
double value_of(const Tensor& number);
/// The sum of all elements of a grid of which `x` are this rank's rows, in the same way.
double sum_of_grid(Communicator& comm, const Tensor& x, const std::vector<Box>& blocks);

}  // namespace cuop::dist
