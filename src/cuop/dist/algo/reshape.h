// x.reshape(shape) of distributed tensors.
#pragma once

#include "cuop/dist/exec/operation.h"

namespace cuop::dist {

/// The elements of x in row-major order under another shape of as many elements; one size may be -1
/// and is what is left. Where every rank's part is a box of the new shape too, as when the
/// dimension that is split stays or only dimensions behind it change, nothing moves, no rank waits
/// for another and parts are views of x's where their strides allow it. Else each rank fetches its
/// block of the result, split along the first dimension that has a row for every rank (else the
/// longest), from the ranks that have its elements; nobody gathers x. Strategies: "keep", "blocks".
/// ShapeError when the shape does not fit.
DistTensor reshape(const DistTensor& x, const Shape& shape, const CallOptions& options = {});

}  // namespace cuop::dist
