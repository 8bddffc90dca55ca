// Arguments of the operator objects.
#pragma once

#include "bindings.h"
#include "cuop/operators/operator.h"

namespace cuop::python {

/// An input: a tensor as it is, anything else converted to the operator's dtype.
Tensor operator_input(nb::handle object, const Operator& op);
/// An output or a tensor that is changed: must be a Tensor, because a converted copy would be lost.
Tensor operator_output(nb::handle object, const char* argument);
/// True or False, or 1 or 0.
bool operator_flag(nb::handle object, const char* argument);

}  // namespace cuop::python
