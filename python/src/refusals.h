// A call of cuop.dist that ends before its ranks have met is told to the other ranks, which would
// wait for this one until their deadline.
#pragma once

#include <nanobind/nanobind.h>

#include <span>
#include <string>

namespace cuop::python {

/// The exception being handled has ended a call of `function` before it met anybody. When there is
/// a communicator among `arguments` and the function waits for other ranks, they are told that this
/// rank refuses the call, and why.
void refuse_together(const std::string& function, bool is_method,
                     std::span<PyObject* const> arguments);

}  // namespace cuop::python
