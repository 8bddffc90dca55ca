// Planning reductions: every rank folds its elements into states, states of the same result are
// brought together and merged in rank order. A tensor split along dimensions that stay needs no
// communication; one split along a reduced dimension sends states, to the root alone when the
// result is wanted there, in blocks (a reduce-scatter) otherwise.
//
// States of many ranks are merged in two stages where that is predicted to be faster: within groups
// of ranks in a row, then among the groups. Worked example: each of 1024 ranks wants a sum. In one
// stage each receives 1023 messages; in groups of 32 each receives 31 of its group, and then 31 of
// the ranks that have its place in the other groups.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "cuop/dist/plan/plan.h"

namespace cuop::dist {

struct ReduceProblem {
  std::string op;
  Placement x;
  std::vector<int> axes;  ///< reduced, ascending
  bool keepdims = false;
  int64_t state_bytes = 8;
  DType result = DType::kFloat32;
  std::optional<Sharding> wanted;
};

/// Strategies: "root" (when x lies on one rank), "keep" (as x lies), "split_kept" and
/// "split_reduced" (blocks of the longest dimension that stays, or goes). inputs[0]: x as folded;
/// outputs[0], outputs[1]: the result where states are merged, which is where it is wanted. Setting
/// "group": ranks that merge their states first (0: all in one stage).
Plan plan_reduce(const ReduceProblem& problem, const Machine& machine,
                 std::string_view strategy = {});

/// The boxes of states [kept dimensions..., bytes] that ranks hold after folding their part of x;
/// of ranks with equal parts only the first contributes.
std::vector<Box> state_owners(const Placement& x, const std::vector<int>& axes,
                              int64_t state_bytes);
/// An exchange of states, of which each rank has those of its owner's box and merges those of the
/// box that it wants. Where there are groups, boxes have one more dimension before the others,
/// which keeps apart what is merged by different ranks.
struct MergeStage {
  std::vector<Box> owners, wanted;
};
/// From `owners`, as `state_owners` gives them, to the boxes of states that make each rank's part
/// of the result.
std::vector<MergeStage> merge_stages(const std::vector<Box>& owners, const Placement& result,
                                     const std::vector<int>& axes, bool keepdims,
                                     int64_t state_bytes, int64_t group);

}  // namespace cuop::dist
