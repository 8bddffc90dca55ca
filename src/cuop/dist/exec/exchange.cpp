#include "cuop/dist/exec/exchange.h"

#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"

namespace cuop::dist {

Tensor view_of(const Part& part, const Box& box) {
  Layout layout = part.local.layout();
  for (int axis = 0; axis < box.ndim(); ++axis) {
    const Interval wanted = box.interval(axis);
    layout = slice(layout, axis, wanted.low - part.box.low[axis], wanted.length(), 1);
  }
  return part.local.with_layout(layout);
}

void exchange(Communicator& comm, const RankMoves& moves, const Part& source,
              const Landing& landing) {
  for (const Piece& piece : moves.kept) copy_into(landing(piece), view_of(source, piece.box));
  if (moves.is_local) return;

  std::vector<Patch> sends, receives;
  for (const Piece& piece : moves.sends) {
    sends.push_back({piece.peer, view_of(source, piece.box)});
  }
  for (const Piece& piece : moves.receives) receives.push_back({piece.peer, landing(piece)});
  comm.exchange(sends, receives, current_stream(source.device));
}

Tensor empty_in(const AxisOrder& order, const Shape& shape, DType dtype, Device device) {
  if (order.empty()) return empty(shape, dtype, device);
  Shape in_memory;
  std::vector<int64_t> place(order.size());  // of each axis in memory
  for (size_t i = 0; i < order.size(); ++i) {
    in_memory.push_back(shape[static_cast<int>(order[i])]);
    place[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  }
  return permute(empty(in_memory, dtype, device), place);
}

Landing Fetch::landing() const {
  return [this](const Piece& piece) { return view_of(result, piece.box); };
}

Fetch prepare_fetch(int rank, const Part& source, const std::vector<Box>& owners,
                    const std::vector<Box>& boxes, DType dtype, const AxisOrder& order) {
  const Box& wanted = boxes[static_cast<size_t>(rank)];
  const std::vector<Need> needs = needs_of(boxes);
  Fetch fetch{plan_moves(rank, owners, needs), {{}, wanted, source.device}};
  if (!wanted.empty() && source.box.contains(wanted)) {
    fetch.result.local = view_of(source, wanted);
    fetch.moves.kept.clear();
  } else if (!wanted.is_void) {
    fetch.result.local = empty_in(order, wanted.shape(), dtype, source.device);
  }
  return fetch;
}

Tensor fetch(Communicator& comm, const Part& source, const std::vector<Box>& owners,
             const std::vector<Box>& boxes, DType dtype, const AxisOrder& order) {
  const Fetch fetch = prepare_fetch(comm.rank(), source, owners, boxes, dtype, order);
  exchange(comm, fetch.moves, source, fetch.landing());
  return fetch.result.local;
}

}  // namespace cuop::dist
