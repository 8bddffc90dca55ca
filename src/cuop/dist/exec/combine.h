// Partial results of several ranks become one.
//
// Worked example: 3 ranks hold partial sums of the same 6 numbers, the result is wanted in blocks
// of
// 2. Rank 1 receives elements [2:4] of ranks 0 and 2 and folds, in rank order, what rank 0, it
// itself and rank 2 have: the same order, hence the same bits, on every run.
#pragma once

#include <functional>

#include "cuop/dist/exec/exchange.h"

namespace cuop::dist {

/// One tensor of equal, row-major ones: what the ranks have of a box, in rank order.
using Fold = std::function<Tensor(const std::vector<Tensor>& pieces)>;
/// Element-wise; 16-bit floats are accumulated in float32.
Fold fold_by(ReduceKind op);

/// `owners[r]` is the box of which rank r holds a partial result (empty: none). Returns the
/// combined tensor of wanted[rank]; undefined where that box is void. The owners' boxes must be
/// equal or disjoint and cover what is wanted.
Tensor combine(Communicator& comm, const Part& partial, const std::vector<Box>& owners,
               const std::vector<Box>& wanted, DType dtype, const Fold& fold);

}  // namespace cuop::dist
