// Reductions in parts: each holder of a part of the elements (a rank, a tile of a file) folds what
// it has, sends the bytes, somebody merges and finishes.
//
//   PartialReduction reduction{ReduceKind::kSum, SumMode::kExact, x.dtype()};
//   Tensor mine = reduction.fold(part, {0});           // uint8 [kept axes..., state_bytes]
//   reduction.merge(mine, theirs);                      // bytes received from another rank
//   Tensor total = reduction.finish(mine, rows_of_all_parts);
//
// States are plain bytes of fixed size, the same on every device, where they stay until they are
// moved: those of a GPU's part are merged with a rank's in host memory after to_device. With
// kExact, and for integers, max, min, any and all, the result does not depend on how the elements
// were split or in which order parts are merged; else merge in a fixed order to get the same bits
// on every run.
#pragma once

#include <cstdint>

#include "cuop/core/tensor.h"
#include "cuop/ops/reduce/axes.h"
#include "cuop/ops/reduce/sum_mode.h"

namespace cuop {

struct WorkFigures;

class PartialReduction {
 public:
  /// `dtype` is that of the elements. DTypeError as for the whole reduction; ExecutionError for
  /// kNorm, which has no partial form (sum its powers). Variances have the divisor
  /// max(0, count - correction).
  PartialReduction(ReduceKind kind, SumMode mode, DType dtype, double correction = 0.0);

  /// Bytes of one state.
  int64_t state_bytes() const { return state_bytes_; }
  /// The dtype of `finish`.
  DType result_dtype() const { return result_; }

  /// The states of x's elements over the axes, uint8 [kept sizes..., state_bytes()]; the identity
  /// where x has no elements.
  Tensor fold(const Tensor& x, Axes axes = {}) const;
  /// Bytes that folding x of this shape, row-major, takes beside its states. Pure.
  int64_t fold_bytes(const Shape& x, Axes axes, const WorkFigures& figures) const;
  /// Bytes that finishing so many states takes beside them and their values. Pure.
  int64_t finish_bytes(int64_t states) const;
  /// into <- into with from; both as `fold` made them, on one device (DeviceError).
  void merge(const Tensor& into, const Tensor& from) const;
  /// The values of states that have seen `count` elements each: the shape of `states` without the
  /// last axis. ShapeError for max and min over no element.
  Tensor finish(const Tensor& states, int64_t count, const Tensor* out = nullptr) const;
  /// The same of states that are given up: the values may lie in their memory.
  Tensor finish(Tensor&& states, int64_t count) const;

  /// The values where one holder has all elements.
  Tensor reduce(const Tensor& x, Axes axes = {}, bool keepdims = false) const;

 private:
  const char* who() const { return name(kind_); }
  void check_states(const Tensor& states) const;

  ReduceKind kind_;
  SumMode mode_;
  DType dtype_, result_;
  double correction_;
  int64_t state_bytes_ = 0;
};

}  // namespace cuop
