#include "cuop/dist/exec/combine.h"

#include <algorithm>

#include "cuop/dist/comm/reduction.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"

namespace cuop::dist {
namespace {

/// What several ranks have of one box.
struct Contributions {
  Box box;
  std::vector<std::pair<int, Tensor>> by_rank;

  Tensor folded(const Fold& fold) {
    std::sort(by_rank.begin(), by_rank.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Tensor> pieces;
    for (const auto& [rank, piece] : by_rank) pieces.push_back(piece);
    return fold(pieces);
  }
};

void add(std::vector<Contributions>& all, const Piece& piece, const Tensor& tensor) {
  auto same = std::find_if(all.begin(), all.end(),
                           [&](const Contributions& each) { return each.box == piece.box; });
  if (same == all.end()) same = all.insert(all.end(), {piece.box, {}});
  same->by_rank.push_back({piece.peer, tensor});
}

}  // namespace

Fold fold_by(ReduceKind op) {
  return [op](const std::vector<Tensor>& pieces) {
    if (pieces.size() == 1) return pieces[0];
    std::vector<const void*> addresses;
    for (const Tensor& piece : pieces) addresses.push_back(piece.data());
    const Device device = pieces[0].device();
    Tensor result = empty(pieces[0].shape(), pieces[0].dtype(), device);
    reduce_in_rank_order(addresses, result.data(), result.size(), result.dtype(), op, device);
    return result;
  };
}

Tensor combine(Communicator& comm, const Part& partial, const std::vector<Box>& owners,
               const std::vector<Box>& wanted, DType dtype, const Fold& fold) {
  const Box& mine = wanted[static_cast<size_t>(comm.rank())];
  RankMoves moves = plan_moves(comm.rank(), owners, needs_of(wanted), Sources::kAll);
  std::vector<Contributions> all;
  for (const Piece& piece : moves.kept) add(all, piece, contiguous(view_of(partial, piece.box)));
  moves.kept.clear();
  exchange(comm, moves, partial, [&](const Piece& piece) {
    Tensor landing = empty(piece.box.shape(), dtype, partial.device);
    add(all, piece, landing);
    return landing;
  });
  if (mine.is_void) return {};
  if (all.size() == 1 && all[0].box == mine) return all[0].folded(fold);
  const Part result{empty(mine.shape(), dtype, partial.device), mine, partial.device};
  for (Contributions& each : all) copy_into(view_of(result, each.box), each.folded(fold));
  return result.local;
}

}  // namespace cuop::dist
