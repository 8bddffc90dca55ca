// Internal: the arithmetic of one reduction over one element type, with types erased so that one
// driver (fold_cpu.h) serves all of them.
//
// A fold turns elements into states. States of parts of the data are merged; what a finished state
// means (a sum, a mean, a variance) is for the caller to say.
#pragma once

#include <cstdint>

#include "cuop/core/dtype.h"
#include "cuop/core/reduce_kind.h"

namespace cuop {

/// States of kCompensatedSum, kExactSum, kMoments: Compensated<double>, ExactSum, Moments. Of kSum,
/// kProd, kMax and kMin: the element type. There are no others.
struct Fold {
  int64_t state_bytes;
  /// The more elements one state takes in one after the other, the larger its error: chunks should
  /// have states of their own that are merged as a tree.
  bool wants_tree;
  /// Sets states to the fold over no element.
  void (*init)(void* states, int64_t count);
  /// Folds row i, n elements from data + i * row_stride (in elements), into state i.
  void (*rows)(void* states, const void* data, int64_t count, int64_t row_stride, int64_t n);
  /// Folds column i of the rows into state i.
  void (*columns)(void* states, const void* const* rows, int64_t row_count, int64_t columns);
  /// Folds states into others, one by one.
  void (*merge)(void* into, const void* from, int64_t count);
};

/// The fold for elements of that dtype: float32 and float64 for every kind; float16, bfloat16 for
/// kMoments; int64, uint64 for kSum, kProd and kExactSum; all integers for kMax and kMin;
/// complex64, complex128 for kSum and kProd. NotImplementedError for any other.
const Fold& fold_cpu(ReduceKind kind, DType element);

/// Elements of kMax and kMin.
using OrderedTypes = Joined<FloatTypes, IntegerTypes>;

/// The tables behind it, one for each instruction set (backend/cpu/isa.h).
template <class Level>
const Fold* simple_fold(ReduceKind kind, DType element);
template <class Level>
const Fold* compensated_fold(DType element);
template <class Level>
const Fold* exact_fold(DType element);
template <class Level>
const Fold* moments_fold(DType element);
/// Sums of squares of float32 or float64; the state is a double.
template <class Level>
const Fold* square_fold(DType element);

/// For every column j: where row[j] is better than best[j] (greater or less; a NaN is better than
/// any number), best[j] = row[j] and position[j] = row_index.
using ArgUpdate = void (*)(void* best, int64_t* position, const void* row, int64_t row_index,
                           int64_t columns);

/// The first place of the best of n elements, 0 < n < 2^31, and in `best` its value.
using ArgRow = int64_t (*)(const void* data, int64_t n, void* best);

/// For elements of OrderedTypes; null for others.
template <class Level>
ArgUpdate arg_update(bool is_max, DType element);
template <class Level>
ArgRow arg_row(bool is_max, DType element);

enum class LoadMap : uint8_t {
  kValue,      ///< the element itself
  kMagnitude,  ///< |x| as float64
  kSquare,     ///< |x|^2 as float64
  kNonzero,    ///< x != 0 as uint8
};

/// n elements from `source`, `stride` elements apart, to `destination`.
using LoadFunction = void (*)(const void* source, int64_t stride, void* destination, int64_t n);

/// Null when no such load exists (a load never loses information, but for int64 to float64).
LoadFunction load_cpu(LoadMap map, DType source, DType element);

template <class Level>
LoadFunction load_function(LoadMap map, DType source, DType element);

}  // namespace cuop
