// Internal: keeping the position of the best element of every column.
#pragma once

#include <cstdint>

#include "cuop/core/dtype.h"

namespace cuop {

/// For every column j: where row[j] is better than best[j] (greater or less; a NaN is better than
/// any number), best[j] = row[j] and position[j] = row_index.
using ArgUpdate = void (*)(void* best, int64_t* position, const void* row, int64_t row_index,
                           int64_t columns);

/// For elements as `fold_cpu` takes them for kMax and kMin; null for others.
template <class Level>
ArgUpdate arg_update(bool is_max, DType element);

}  // namespace cuop
