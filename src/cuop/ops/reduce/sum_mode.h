// How the sums of a reduction are added up.
#pragma once

#include <cstdint>
#include <string_view>

#include "cuop/core/reduce_kind.h"

namespace cuop {

/// How sums and means are added up; they begin at 0, so that no sum of negative zeros is one. Sums
/// of integers are exact modulo 2^64, with kExact exact.
enum class SumMode : uint8_t {
  /// Pairwise: the error grows with the logarithm of the number of elements.
  kPlain,
  /// Kahan-Babuska-Neumaier in double precision: error of one rounding, independent of the number
  /// of elements, unless cancellation exceeds 2^50 (2^25 for float32, of which eight at a time are
  /// added in plain double).
  kCompensated,
  /// The true sum rounded once (nearest even): the same bits for any order, split, thread or rank
  /// count. Overflow only when the true sum overflows: floats become infinite, of integers it is an
  /// OverflowError that names the sum. For that a GPU is waited for where 64 bits may not be
  /// enough.
  kExact,
};
/// "plain", "compensated", "exact"; anything else is an ExecutionError that names these.
SumMode parse_sum_mode(std::string_view text);
const char* name(SumMode mode);

}  // namespace cuop
