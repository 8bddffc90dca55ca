// Carrying out planned moves: pieces are cut out of the tensor a rank holds, travel in one
// all-to-all, and land where the caller says. Collective: every rank of the communicator calls with
// the same owners and needs.
#pragma once

#include <functional>
#include <vector>

#include "cuop/core/tensor.h"
#include "cuop/dist/comm/communicator.h"
#include "cuop/dist/moves.h"

namespace cuop::dist {

/// What one rank holds: `local` is the part `box` of a global tensor (undefined where the box is
/// empty), on `device`, where the rank's results are made.
struct Part {
  Tensor local;
  Box box;
  Device device = kCpu;
};

/// The view of `part` that is `box` of the global tensor.
Tensor view_of(const Part& part, const Box& box);

/// Says where a piece lands: a tensor of the piece's shape, of the dtype that travels, on the
/// source's device.
using Landing = std::function<Tensor(const Piece&)>;

/// Sends from `source` and fills the landings of received and kept pieces. Elements are copied bit
/// by bit. Nothing is sent at all when no rank has anything to send.
void exchange(Communicator& comm, const RankMoves& moves, const Part& source, DType dtype,
              const Landing& landing);

/// The tensor `boxes[rank]` of a global tensor whose parts lie as `owners` say; the part itself, or
/// a view of it, where this rank already holds all it wants. Undefined where the box is void.
Tensor fetch(Communicator& comm, const Part& source, const std::vector<Box>& owners,
             const std::vector<Box>& boxes, DType dtype);

}  // namespace cuop::dist
