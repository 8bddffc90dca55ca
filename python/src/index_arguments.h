// What stands between the brackets of x[...].
#pragma once

#include <vector>

#include "bindings.h"
#include "cuop/ops/index/indexing.h"

namespace cuop::python {

/// An integer, slice, None, ..., mask or index array, or a tuple of them; what becomes a tensor is
/// made on `device`.
std::vector<Index> to_indices(nb::handle key, Device device);

}  // namespace cuop::python
