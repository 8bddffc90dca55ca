// Options of the operators that slide a window over spatial axes (conv, pool).
#pragma once

#include "cuop/core/dims.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop {

/// The value of an option for one of `spatial` axes, of which the caller gave one value for each or
/// one for all. ShapeError for another number of values and for a value below `least`.
inline int64_t spatial_option(const char* who, const char* name, const Dims& given, int axis,
                              int spatial, int64_t least) {
  if (given.ndim() != 1 && given.ndim() != spatial) {
    throw ShapeError(cat(who, ": ", name, " is ", given, "; it needs 1 or ", spatial, " values"));
  }
  const int64_t value = given[given.ndim() == 1 ? 0 : axis];
  if (value < least) {
    throw ShapeError(cat(who, ": ", name, " is ", given, "; it must be at least ", least));
  }
  return value;
}

}  // namespace cuop
