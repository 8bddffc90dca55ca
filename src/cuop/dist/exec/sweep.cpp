#include "cuop/dist/exec/sweep.h"

#include <algorithm>
#include <limits>

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
  // Rows outside the grid are zero and never written.
  current_ = zeros({rows_ + 2 * halo, grid[1]}, dtype_, device_);
  next_ = zeros({rows_ + 2 * halo, grid[1]}, dtype_, device_);
  copy_into(this->block(), block);
}

Tensor SweptRows::rows(const Tensor& of, int64_t low, int64_t high) const {
  return slice(of, 0, low + halo_, high + halo_);
}

Tensor SweptRows::padded(int64_t radius) const { return rows(current_, -radius, rows_ + radius); }

void SweptRows::exchange_halo() {
  const Part source{is_empty() ? Tensor() : block(), box_, device_};
  exchange(comm_, moves_, source, dtype_, [&](const Piece& piece) {
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
  work(rows(current_, low - radius, high + radius), low, rows(next_, low, high));
  std::swap(current_, next_);
}

}  // namespace cuop::dist
