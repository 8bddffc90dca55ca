#include "cuop/dist/exec/combine.h"

#include <map>

#include "cuop/ops/create/create.h"

namespace cuop::dist {

Tensor combine(Communicator& comm, const Part& partial, const std::vector<Box>& owners,
               const std::vector<Box>& wanted, DType dtype, const Fold& fold) {
  const Box& mine = wanted[static_cast<size_t>(comm.rank())];
  RankMoves moves = plan_moves(comm.rank(), owners, needs_of(wanted), Sources::kAll);
  std::map<int, Tensor> pieces;  // by source rank
  for (const Piece& piece : moves.kept) pieces[piece.peer] = view_of(partial, piece.box);
  moves.kept.clear();
  exchange(comm, moves, partial, dtype, [&](const Piece& piece) {
    return pieces[piece.peer] = empty(piece.box.shape(), dtype);
  });
  if (mine.is_void) return {};
  if (pieces.empty()) return empty(mine.shape(), dtype);
  Tensor result;
  for (const auto& [rank, piece] : pieces) {
    result = result.is_defined() ? fold(result, piece) : piece;
  }
  return result;
}

}  // namespace cuop::dist
