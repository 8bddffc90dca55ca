#include "cuop/dist/exec/row_window.h"

#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"

namespace cuop::dist {

RowWindow::RowWindow(Communicator& comm, const std::vector<Box>& blocks,
                     const std::vector<Interval>& wanted, const Shape& shape, bool is_periodic,
                     DType dtype, Device device)
    : comm_(comm), device_(device) {
  const auto rank = static_cast<size_t>(comm.rank());
  std::vector<Box> windows;
  for (const Interval& rows : wanted) {
    windows.push_back(rows.length() > 0 ? Box{{rows.low, 0}, {rows.high, shape[1]}} : empty_box(2));
  }
  own_ = blocks[rank];
  window_ = windows[rank];
  needs_ = needs_of_windows(windows, shape, is_periodic);
  moves_ = plan_moves(comm.rank(), blocks, needs_.needs);
  is_own_ = !window_.empty() && own_.contains(window_);
  if (is_own_) {
    moves_.kept.clear();
  } else if (!window_.empty()) {
    made_ = zeros(window_.shape(), dtype, device);
  }
}

Tensor RowWindow::fetch(const Tensor& block) {
  exchange(comm_, moves_, {block, own_, device_}, [&](const Piece& piece) {
    const auto need = static_cast<size_t>(piece.need);
    const int64_t low = needs_.place[need][0] + piece.box.low[0] - needs_.needs[need].box.low[0];
    return slice(made_, 0, low, low + piece.box.interval(0).length());
  });
  if (is_own_) return slice(block, 0, window_.low[0] - own_.low[0], window_.high[0] - own_.low[0]);
  return made_;
}

}  // namespace cuop::dist
