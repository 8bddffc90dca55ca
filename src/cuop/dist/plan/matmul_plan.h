// Planning C [M, N] = A [M, K] @ B [K, N] over a grid of pm x pn x pk ranks: rank (i, j, l)
// multiplies row block i of A by column block j of B over part l of the inner dimension; for pk > 1
// the partial products are added up by the pk ranks that share a block of C (the family of
// algorithms of Solomonik and Demmel, 2011; SUMMA is pk = 1 with panels).
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "cuop/dist/plan/plan.h"
#include "cuop/dist/plan/wire.h"

namespace cuop::dist {

/// ExecutionError, of this caller, unless there are two inputs; ShapeError unless they are [M, K]
/// and [K, N].
void check_matrices(const char* who, const std::vector<Placement>& inputs);

struct MatmulProblem {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  DType dtype = DType::kFloat32;  ///< in which it is computed
  Sharding a;                     ///< where A lies
  Sharding b;                     ///< where B lies
  std::optional<Sharding> c;      ///< where C is wanted; none leaves it where it is computed
  Wire wire = {};                 ///< the form in which blocks of A, B and C travel
  bool may_narrow = true;         ///< whether blocks may be multiplied in a narrow wire's dtype
};

/// Strategies: "root" (all on the one rank that holds both inputs, offered when there is one),
/// "row" (pm x 1 x 1), "column" (1 x pn x 1), "block_2d" (pm x pn x 1), "k_split" (pk > 1), each of
/// the grids that leave some ranks idle too. What one rank has and several need, these pass on to
/// each other where that is faster (`is_relayed`). `setting("chunks")`, more than 1 where
/// arithmetic hides moves (Machine::overlap): C is made in so many chunks, each of some rows of A
/// or some columns of B (`chunked_input`) by all of the other operand, while those of the next are
/// on their way. Under a memory limit the inner dimension is cut into `setting("panels")` panels,
/// fetched one after the other. The grid is in the settings "pm", "pn" and "pk", 0 of "root".
/// `strategy` forces one; MemoryError when nothing fits. `setting("narrow")` is 1 where blocks of
/// float32 that travel in a narrow wire are rounded to its dtype on all ranks and multiplied so,
/// with results in float32: where 16-bit products are so much faster that this pays.
/// `setting("sparse_a")`, "sparse_b" and "sparse_c" of a wire by cost: Wire::per_mille of the
/// blocks of each. inputs[0], inputs[1]: A and B as multiplied; outputs[0]: C as computed;
/// outputs[1]: C as wanted.
Plan plan_matmul(const MatmulProblem& problem, const Machine& machine,
                 std::string_view strategy = {});

/// What every plan of it needs.
Floor matmul_floor(const MatmulProblem& problem, const Machine& machine);

/// Whether a block of C is a sum of several products, of panels or of ranks. Those of 16-bit
/// operands are float32 and the sum is rounded once.
bool sums_panels(int64_t panels, const Sharding& partial, const Sharding& c);

/// Chunks are whole multiples of so many rows or columns: cache lines.
inline constexpr int64_t kChunkUnit = 64;
/// The operand that comes in chunks, 0 or 1.
size_t chunked_input(const Plan& plan);

/// The boxes of C before partial products are combined; equal boxes (over "k") are partial.
Sharding partial_sharding(const Plan& plan);

}  // namespace cuop::dist
