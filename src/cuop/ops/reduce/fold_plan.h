// Internal: one fold over the reduced axes of a strided tensor, on the CPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "cuop/core/tensor.h"
#include "cuop/ops/reduce/fold.h"
#include "cuop/ops/strided.h"

namespace cuop {

/// Elements are prepared by `load`, then, for powers of norms, by `transform` in place (float64).
struct FoldInput {
  ReduceKind kind = ReduceKind::kSum;
  DType element = DType::kFloat32;
  LoadMap map = LoadMap::kValue;
  void (*transform)(double* data, int64_t n, double parameter) = nullptr;
  double parameter = 0.0;
  std::optional<uint8_t> last = {};  ///< of uint8: a state that no element changes any more
};

/// What is folded, in what order. States are numbered along `kept` (operand 0: x, operand 1: the
/// result), whose axes fall in stride so that memory is read in order; `by_columns` says that the
/// innermost axis of x in memory is a kept one.
struct FoldPlan {
  const Fold* fold = nullptr;
  FoldInput input;
  DType source = DType::kFloat32;
  DType element = DType::kFloat32;  ///< what the fold reads; not the input's where it squares that
  LoadFunction load = nullptr;
  bool is_direct = false;  ///< elements are folded where they lie
  bool by_columns = false;
  LoopNest<2> kept;
  LoopNest<1> reduced;

  int64_t states() const { return kept.size(); }
  int64_t length() const { return reduced.size(); }
};

/// How a fold is cut, which fixes the order of its additions on every device.
struct FoldCuts {
  static constexpr int64_t kChunk = 16384;       ///< elements of a row folded in one go
  static constexpr int64_t kPackedChunk = 4096;  ///< the same where they must be gathered first
  static constexpr int64_t kPart = 4 * kChunk;   ///< elements of a row whose chunks are in order
  static constexpr int64_t kShortRun = 256;      ///< shorter runs are gathered first
  static constexpr int64_t kRowChunk = 128;      ///< rows that are folded into columns in one go
  static constexpr int64_t kMaxRowChunk = 256;   ///< where a state takes in any number well
  static constexpr int64_t kPackedRows = 32;     ///< where they must be gathered first
  static constexpr int64_t kRowPart = 16 * kRowChunk;  ///< rows whose chunks are in order
};

/// `result` has the shape of x with every reduced axis of size 1; its elements are where the
/// results will lie. DTypeError when the elements cannot be loaded as asked.
FoldPlan plan_fold(const char* who, const FoldInput& input, const Tensor& x, const Layout& result,
                   const std::vector<int>& axes);

/// A fold by columns as one of `join` neighbouring rows side by side, whose states are then merged
/// as a tree into those of the rows left over.
struct JoinedFold {
  int64_t join = 1;  ///< 1: the fold is done as it is
  FoldPlan wide, rest;
  int64_t rest_rows = 0, rest_offset = 0;  ///< rows left over, and where they begin, in elements
};
/// Where the columns are too few to fill vectors and the rows follow each other without a gap.
JoinedFold join_rows(const FoldPlan& plan);

/// Calls run(plan, x, result) for the fold of x or, where states would take too much memory, of
/// one half along the longest kept axis after the other.
using RunFold = std::function<void(const FoldPlan&, const Tensor& x, const Tensor& result)>;
void for_fold_parts(const char* who, const FoldInput& input, const Tensor& x,
                    const std::vector<int>& axes, const Tensor& result, const RunFold& run);

/// Folds the elements from `data` on into plan.states() states. The order of operations depends on
/// the plan only, not on the number of threads.
void run_fold(const FoldPlan& plan, const std::byte* data, std::byte* states);

}  // namespace cuop
