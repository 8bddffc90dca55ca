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

/// Takes the next rank's piece into the accumulated one (both of one shape) and answers it.
using Fold = std::function<Tensor(const Tensor& accumulated, const Tensor& piece)>;

/// `owners[r]` is the box of which rank r holds a partial result (empty: none). Answers the
/// combined tensor of wanted[rank]; undefined where that box is void. Every index of a wanted box
/// must be in some owner's box, and the owners' intersections with a wanted box must be equal or
/// empty.
Tensor combine(Communicator& comm, const Part& partial, const std::vector<Box>& owners,
               const std::vector<Box>& wanted, DType dtype, const Fold& fold);

}  // namespace cuop::dist
