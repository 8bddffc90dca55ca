// Tensors as TensorNotes, which describe them to other ranks.
#pragma once

#include <string>

#include "cuop/core/tensor.h"
#include "cuop/dist/comm/fabric_messages.h"

namespace cuop::dist::fabric {

/// Its dtype, shape and strides; of no place yet.
TensorNote note_of(const Tensor& tensor);
/// "(4, 3) of float32", also of numbers that make no sense.
std::string text_of(const TensorNote& note);
/// CommunicationError "expects (4, 3) of float32, and was sent ..." unless it is of this dtype and
/// shape.
void check_fits(const TensorNote& note, DType dtype, const Shape& shape);

}  // namespace cuop::dist::fabric
