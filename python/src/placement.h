// Where arrays of other kinds go when they are arguments of a call.
#pragma once

#include "bindings.h"

namespace cuop::python {

/// The tensor made of an argument, on the device where it is used: a tensor of cuOP and a GPU array
/// stay where they are; what lies on the host (NumPy arrays, lists, numbers, buffers) goes beside
/// the call's first tensor, be it an operand, an output or an item of a list, then beside its first
/// GPU array of another library, and in a call without either to the current device.
Tensor placed(nb::handle object, const Tensor& tensor);

}  // namespace cuop::python
