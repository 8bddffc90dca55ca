// Reductions over ranks: each folds what it has, states are merged in rank order.
#pragma once

#include "cuop/dist/exec/operation.h"
#include "cuop/ops/reduce/partial.h"
#include "cuop/ops/reduce/reduce.h"

namespace cuop::dist {

/// What is reduced and how. kSum, kMean, kProd, kMax, kMin, kAny, kAll, kVar, kStd.
struct ReduceOptions {
  ReduceKind kind = ReduceKind::kSum;
  ReduceAxes axes = {};  ///< by default all; over no axis `keepdims` says nothing
  bool keepdims = false;
  /// Of sums and means; kExact gives the same bits for any sharding and number of ranks.
  SumMode mode = SumMode::kPlain;
  /// Of kVar and kStd: the divisor is max(0, n - correction).
  double correction = 0.0;
};

/// The axes of a tensor of this shape that are reduced, ascending. ShapeError for one that is out
/// of range, and over no axis of a tensor that may not have another one.
std::vector<int> reduced_axes(const ReduceOptions& options, const Shape& x);
/// ShapeError where max or min have no element along these axes.
void check_has_elements(const ReduceOptions& options, const std::vector<int>& axes, const Shape& x);
/// As text, for the names of operations: "(0, 2)", "()" for all of them, "none".
std::string axes_text(const ReduceOptions& options);
/// Elements along these axes, of which each element of the result is made.
int64_t elements_along(const std::vector<int>& axes, const Shape& x);

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

/// Variance and standard deviation with divisor max(0, n - correction): moments of the ranks' parts
/// are merged by the formula of Chan, Golub and LeVeque (1983), in rank order. Integers give
/// float64; DTypeError for complex.
inline DistTensor var(const DistTensor& x, std::vector<int64_t> axes = {}, double correction = 0.0,
                      bool keepdims = false) {
  return reduce(x, {ReduceKind::kVar, std::move(axes), keepdims, SumMode::kPlain, correction});
}
inline DistTensor stddev(const DistTensor& x, std::vector<int64_t> axes = {},
                         double correction = 0.0, bool keepdims = false) {
  return reduce(x, {ReduceKind::kStd, std::move(axes), keepdims, SumMode::kPlain, correction});
}

}  // namespace cuop::dist
