// Carrying out planned moves: pieces are cut out of the tensor a rank holds, travel in one
// all-to-all, and land where the caller says. Collective: every rank of the communicator calls with
// the same owners and needs.
#pragma once

#include <functional>
#include <vector>

#include "cuop/core/tensor.h"
#include "cuop/dist/comm/communicator.h"
#include "cuop/dist/dist_tensor.h"
#include "cuop/dist/moves.h"
#include "cuop/dist/plan/wire.h"

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
void exchange(Communicator& comm, const RankMoves& moves, const Part& source,
              const Landing& landing);

/// Axes from the slowest to the fastest in memory; row-major when there are none.
using AxisOrder = std::vector<int64_t>;
/// A tensor of `shape` whose elements lie in that order.
Tensor empty_in(const AxisOrder& order, const Shape& shape, DType dtype, Device device);

/// Where a rank that holds `source` has a box of a global tensor: within what it holds, or in a new
/// tensor in `order`. Undefined where the box is void.
Part place_for(const Box& wanted, const Part& source, DType dtype, const AxisOrder& order = {});

/// Moves by which a rank gets its box of a global tensor, and where they land.
struct Fetch {
  RankMoves moves;
  Part result;  ///< undefined where the box is void

  Landing landing() const;
};
Fetch prepare_fetch(int rank, const Part& source, const std::vector<Box>& owners,
                    const std::vector<Box>& boxes, DType dtype, const AxisOrder& order = {});

/// The tensor `boxes[rank]` of a global tensor whose parts lie as `owners` say; the part itself, or
/// a view of it, where this rank already holds all it wants, else a new one in `order`, whose
/// pieces are put into that order as they are copied to their place. Undefined where the box is
/// void.
Tensor fetch(Communicator& comm, const Part& source, const std::vector<Box>& owners,
             const std::vector<Box>& boxes, DType dtype, const AxisOrder& order = {});

/// The same of a tensor of `dtype` whose elements travel in the form of a wire (plan/wire.h). Of a
/// narrow wire the elements of a piece along `axis` share a power of two, by which the largest of
/// them becomes one that float16 holds: 1e38, 1e-40 and infinities arrive. Elements that are no
/// longer than the wire's travel as they are.
void exchange(Communicator& comm, const RankMoves& moves, const Part& source,
              const Landing& landing, DType dtype, const Wire& wire, int axis);
/// Where it is relayed they come by way of the ranks that share a box (relay.h). What a rank has
/// itself is copied to its place too, unless that has been done (place_own).
struct Travel {
  Wire wire = {};
  int axis = 0;
  bool is_relayed = false;
  bool is_own_placed = false;
};
Tensor fetch(Communicator& comm, const Part& source, const std::vector<Box>& owners,
             const std::vector<Box>& boxes, DType dtype, const Travel& travel);
/// Copies to `place`, which holds the box `boxes[rank]`, what `source` has of it. Before a
/// pipeline: beside arithmetic that has all of a GPU's multiprocessors such a copy waits for its
/// end.
void place_own(int rank, const Part& source, const std::vector<Box>& owners,
               const std::vector<Box>& boxes, const Part& place);
/// Fills this rank's box of `boxes` in `place`, the part of a global tensor that holds it; what
/// lies there already, as `place` is a view of `source`, stays.
void fetch_into(Communicator& comm, const Part& source, const std::vector<Box>& owners,
                const std::vector<Box>& boxes, const Part& place, DType dtype,
                const Travel& travel = {});

/// The result, or a copy of one that lies in an input's memory: who gets it may write to it.
Tensor in_own_memory(const Tensor& result, const std::vector<Tensor>& inputs);

/// The same tensor under another sharding, within a call whose ranks agree already; only pieces
/// that are not there already travel. What has to be copied to its new place is put into `order` on
/// the way.
DistTensor moved_to(const DistTensor& x, const Sharding& sharding, const AxisOrder& order = {});
/// In another form on the way, of which elements along `axis` share a scale.
DistTensor moved_to(const DistTensor& x, const Sharding& sharding, const Wire& wire, int axis);
/// The part of `x` that this rank holds.
Part part_of(const DistTensor& x);

}  // namespace cuop::dist
