// Reductions over ranks: each folds what it has, states are merged in rank order.
#pragma once

#include "cuop/dist/exec/operation.h"
#include "cuop/ops/reduce/partial.h"
#include "cuop/ops/reduce/reduce.h"

namespace cuop::dist {

/// What is reduced and how. kSum, kMean, kProd, kMax, kMin, kAny, kAll, kVar, kStd.
struct ReduceOptions {
  ReduceKind kind = ReduceKind::kSum;
  std::vector<int64_t> axes = {};  ///< none: all
  bool keepdims = false;
  /// Of sums and means; kExact gives the same bits for any sharding and number of ranks.
  SumMode mode = SumMode::kPlain;
};

/// The reduction of x as ops/reduce says (dtypes, NaN, empty inputs). When the result is not wanted
/// elsewhere it is split as x's dimensions that stay, or on every rank when none stays. Strategies:
/// "keep", "split_kept", "split_reduced", and "root" when x lies on one rank.
DistTensor reduce(const DistTensor& x, const ReduceOptions& options = {},
                  const CallOptions& call = {});
Tensor reduce_from_root(const CommunicatorPtr& comm, const Tensor& x,
                        const ReduceOptions& options = {}, const CallOptions& call = {});

// The most common ones, over `axes` (none: all).
inline DistTensor sum(const DistTensor& x, std::vector<int64_t> axes = {}, bool keepdims = false,
                      SumMode mode = SumMode::kPlain) {
  return reduce(x, {ReduceKind::kSum, std::move(axes), keepdims, mode});
}
inline DistTensor mean(const DistTensor& x, std::vector<int64_t> axes = {}, bool keepdims = false,
                       SumMode mode = SumMode::kPlain) {
  return reduce(x, {ReduceKind::kMean, std::move(axes), keepdims, mode});
}
inline DistTensor max(const DistTensor& x, std::vector<int64_t> axes = {}, bool keepdims = false) {
  return reduce(x, {ReduceKind::kMax, std::move(axes), keepdims});
}
inline DistTensor min(const DistTensor& x, std::vector<int64_t> axes = {}, bool keepdims = false) {
  return reduce(x, {ReduceKind::kMin, std::move(axes), keepdims});
}

}  // namespace cuop::dist
