// Options of the operators that slide a window over spatial axes (conv, pool).
#pragma once

#include "cuop/core/dims.h"

namespace cuop {

/// The value of an option for one of `spatial` axes, of which the caller gave one value for each or
/// one for all. ShapeError for another number of values and for a value below `least`.
int64_t spatial_option(const char* who, const char* name, const Dims& given, int axis, int spatial,
                       int64_t least);

}  // namespace cuop
