// Arithmetic in chunks, one of which is done while the operands of the next are on their way.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "cuop/dist/plan/plan.h"

namespace cuop::dist {

/// Seconds of `chunks` equal chunks that take `compute` and `moves` in all, `each` being what a
/// chunk costs by itself: max + min / chunks + chunks * each. One chunk overlaps with nothing.
double overlapped_seconds(double compute, double moves, int64_t chunks, double each = 0.0);
/// The number of chunks of the least such time, at most `most`.
int64_t best_chunks(double compute, double moves, double each, int64_t most);

/// The number of chunks above which nothing is gained, of blocks that are cut along `axis` at
/// multiples of `unit` indices; 0 where no block holds a unit.
int64_t most_chunks(const std::vector<Box>& blocks, int axis, int64_t unit = 1);

/// Sets setting("chunks") of the plan: the number, at most `most`, in which the arithmetic of step
/// `compute` takes least time beside the moves of the steps `moves`, which are cut alike, or the
/// next smaller one that `is_possible` (all are, if none is given); 1 where nothing is gained. The
/// moves' steps keep the seconds that arithmetic does not hide. Of a rooted plan `others` are the
/// seconds of the other ranks' arithmetic: the root's own waits for no move, nor any move for it.
void overlap_moves(Plan& plan, const Machine& machine, const std::vector<size_t>& moves,
                   size_t compute, int64_t most,
                   const std::function<bool(int64_t chunks)>& is_possible = {},
                   std::optional<double> others = {});

/// That setting; 1 where there is none.
int64_t chunks_of(const Plan& plan);

/// What of the ranks' blocks belongs to a chunk, cut along `axis` at multiples of `unit` indices
/// from their beginnings.
std::vector<Box> chunk_of(std::vector<Box> blocks, int axis, int64_t chunks, int64_t chunk,
                          int64_t unit = 1);

}  // namespace cuop::dist
