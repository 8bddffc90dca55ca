// Planned moves whose elements travel in another form (plan/wire.h).
#pragma once

#include "cuop/dist/exec/exchange.h"
#include "cuop/dist/plan/wire.h"

namespace cuop::dist {

/// As `exchange` and `fetch` of exec/exchange.h, of a tensor of `dtype`. Of a narrow wire the
/// elements of a piece along `axis` share a power of two, by which the largest of them becomes one
/// that float16 holds: 1e38, 1e-40 and infinities arrive. Elements that are no longer than the
/// wire's travel as they are.
void exchange(Communicator& comm, const RankMoves& moves, const Part& source,
              const Landing& landing, DType dtype, const Wire& wire, int axis);
Tensor fetch(Communicator& comm, const Part& source, const std::vector<Box>& owners,
             const std::vector<Box>& boxes, DType dtype, const Wire& wire, int axis);

}  // namespace cuop::dist
