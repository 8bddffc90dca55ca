#include "cuop/dist/exec/combine.h"

#include <map>

#include "cuop/dist/comm/reduction.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"

namespace cuop::dist {

Fold fold_by(ReduceOp op) {
  return [op](const std::vector<Tensor>& pieces) {
    if (pieces.size() == 1) return pieces[0];
    std::vector<const void*> addresses;
    for (const Tensor& piece : pieces) addresses.push_back(piece.data());
    Tensor result = empty(pieces[0].shape(), pieces[0].dtype());
    reduce_in_rank_order(addresses, result.data(), result.size(), result.dtype(), op);
    return result;
  };
}

Tensor combine(Communicator& comm, const Part& partial, const std::vector<Box>& owners,
               const std::vector<Box>& wanted, DType dtype, const Fold& fold) {
  const Box& mine = wanted[static_cast<size_t>(comm.rank())];
  RankMoves moves = plan_moves(comm.rank(), owners, needs_of(wanted), Sources::kAll);
  std::map<int, Tensor> by_source;
  for (const Piece& piece : moves.kept) {
    by_source[piece.peer] = contiguous(view_of(partial, piece.box));
  }
  moves.kept.clear();
  exchange(comm, moves, partial, dtype, [&](const Piece& piece) {
    return by_source[piece.peer] = empty(piece.box.shape(), dtype);
  });
  if (mine.is_void) return {};
  if (by_source.empty()) return empty(mine.shape(), dtype);
  std::vector<Tensor> pieces;
  for (const auto& [rank, piece] : by_source) pieces.push_back(piece);
  return fold(pieces);
}

}  // namespace cuop::dist
