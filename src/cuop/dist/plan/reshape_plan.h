// Planning reshapes. Parts that are boxes of the new shape too stay where they are. Else each rank
// fetches its block of the result: its elements lie in runs of the tensor's row-major order, and a
// run is at most 2 ndim - 1 boxes of the old shape, so no rank ever needs more than its block.
//
// Worked example, 5 x 4 to 2 x 10 on 2 ranks, in rows of 3 and 2: rank 0's block [0:1, 0:10] is the
// run of elements 0 to 10, which are the boxes [0:2, 0:4] and [2:3, 0:2].
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "cuop/dist/plan/plan.h"

namespace cuop::dist {

struct ReshapeProblem {
  Placement x;
  Shape shape;                     ///< of the result, as many elements
  std::optional<Sharding> wanted;  ///< where the result is wanted; none leaves it where it is made
};

/// Strategies: "keep" (parts stay), where that can be, else or when asked for "blocks".
Plan plan_reshape(const ReshapeProblem& problem, const Machine& machine,
                  std::string_view strategy = {});

/// The sharding of the result under which every rank has the elements that it has of x, in the same
/// order; none where some rank's are no box of the new shape, or none that a sharding can say.
std::optional<Sharding> kept_sharding(const Sharding& sharding, const Shape& from, const Shape& to);

/// A box of the old shape, and the place of its first element in the row-major block of the result.
struct Run {
  Box box;
  int64_t offset = 0;
};
/// Those that make a block of the result, in its order.
std::vector<Run> runs_of(const Box& block, const Shape& from, const Shape& to);
/// Those of every rank's block, as needs: rank after rank, each in its order.
std::vector<Need> reshape_needs(const std::vector<Box>& blocks, const Shape& from, const Shape& to);

}  // namespace cuop::dist
