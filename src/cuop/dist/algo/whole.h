// Conversions of distributed tensors to tensors and numbers of one rank, which nobody called
// gather.
#pragma once

#include "cuop/dist/dist_tensor.h"

namespace cuop::dist {

/// All of x on every rank, for the conversion `who`. Where x lies on every rank already this waits
/// for nobody; else it is collective, and inside a StrictScope a GatherError on all ranks unless x
/// has one element or none.
Tensor whole(const DistTensor& x, const char* who);

}  // namespace cuop::dist
