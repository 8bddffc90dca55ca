#include "cuop/dist/exec/sweep.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "cuop/backend/runtime.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"

namespace cuop::dist {

SweptRows::SweptRows(Communicator& comm, const Tensor& block, const std::vector<Box>& blocks,
                     const Shape& grid, int64_t halo, bool is_periodic)
    : comm_(comm),
      rows_(block.shape(0)),
      halo_(halo),
      box_(blocks[static_cast<size_t>(comm.rank())]),
      dtype_(block.dtype()),
      device_(block.device()),
      halo_needs_(halo_needs(blocks, grid[0], grid[1], halo, is_periodic)),
      moves_(plan_moves(comm.rank(), blocks, halo_needs_.needs)) {
  constexpr int64_t kUnbounded = std::numeric_limits<int64_t>::max() / 2;
  allowed_ = is_periodic ? Interval{-kUnbounded, kUnbounded}
                         : Interval{-box_.low[0], grid[0] - box_.low[0]};
  if (is_empty()) return;
  width_ = grid[1];
  current_ = fresh();
  copy_into(this->block(), block);
}

/// Rows outside the grid are zero and never written.
Tensor SweptRows::fresh() const { return zeros({rows_ + 2 * halo_, width_}, dtype_, device_); }

Tensor SweptRows::rows_of(const Tensor& padded, int64_t low, int64_t high) const {
  return slice(padded, 0, low + halo_, high + halo_);
}

Tensor SweptRows::padded(int64_t radius) const { return rows(-radius, rows_ + radius); }

void SweptRows::keep() {
  if (is_empty()) return;
  if (!(kept_.storage() == current_.storage())) spare_ = kept_;
  kept_ = current_;
}

void SweptRows::restore() {
  if (is_empty() || kept_.storage() == current_.storage()) return;
  spare_ = current_;
  current_ = kept_;
}

void SweptRows::exchange_halo() {
  const Part source{is_empty() ? Tensor() : block(), box_, device_};
  exchange(comm_, moves_, source, [&](const Piece& piece) {
    const auto need = static_cast<size_t>(piece.need);
    const int64_t row =
        halo_needs_.row[need] + piece.box.low[0] - halo_needs_.needs[need].box.low[0];
    return slice(current_, 0, row, row + piece.box.interval(0).length());
  });
}

void SweptRows::sweep(int64_t radius, int64_t margin, const Sweep& work) {
  if (is_empty()) return;
  const int64_t low = std::max(-margin, allowed_.low);
  const int64_t high = std::min(rows_ + margin, allowed_.high);
  if (!next_.is_defined()) next_ = fresh();
  work(rows(low - radius, high + radius), low, rows_of(next_, low, high));
  const bool is_kept = kept_.is_defined() && kept_.storage() == current_.storage();
  std::swap(current_, next_);
  if (is_kept) next_ = std::exchange(spare_, Tensor());
  constexpr int kAhead = 64;  // so that an interrupt finds little work that was launched already
  if (device_.is_cpu() || ++ahead_ < kAhead) return;
  ahead_ = 0;
  backend::runtime(device_).synchronize(current_stream(device_));
}

}  // namespace cuop::dist
