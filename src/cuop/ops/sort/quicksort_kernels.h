// Sorting numbers by vectors, without a branch that depends on them: quicksort, whose partitions
// store what is below the pivot at one end and the rest at the other, down to what 32 registers
// hold, or 16 of AVX-512, which a network sorts. Sources: Bramas, "A Novel Hybrid Quicksort
// Algorithm Vectorized using AVX-512 on Intel Skylake" (2017); Blacher, Giesen, Kuehne, "Fast and
// Robust Vectorized In-Place Sorting of Primitive Types" (2021).
#pragma once

#include <cstdint>

#include "cuop/backend/cpu/isa.h"
#include "cuop/ops/sort/sort_arguments.cuh"

namespace cuop::kernels {

/// Of int32_t and int64_t, and of values that are as long.
template <class Number>
struct Quicksort {
  /// Values that lie in a row as numbers of the same order, NaN above all; in place too.
  void (*read)(const void* values, int64_t count, jit::NumberKind kind, Number* numbers);
  /// The values back in the place of their numbers.
  void (*write)(Number* numbers, int64_t count, jit::NumberKind kind);
  /// Sorts them, in rising order; Interrupted.
  void (*sort)(Number* numbers, int64_t count);
  /// Puts those below one of them, or else all that equal the least, first; how many those are:
  /// `count` when all are equal. Of at least 64 numbers.
  int64_t (*split)(Number* numbers, int64_t count);
};

/// Null where the instruction set has no permutations by number.
template <class Level, class Number>
const Quicksort<Number>* quicksort();

/// What a partition does when it was unlucky too often: in n log n steps, whatever the numbers.
template <class Number>
void sort_by_comparing(Number* numbers, int64_t count);

/// That of the instruction set in use.
template <class Number>
const Quicksort<Number>* quicksort_in_use() {
  static const Quicksort<Number>* const chosen =
      isa::choose([]<class Level>(Level) { return quicksort<Level, Number>(); });
  return chosen;
}

}  // namespace cuop::kernels
