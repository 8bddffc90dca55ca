// What is done when a call ends: ranks are told of a call of cuop.dist or cuop.executor that ends
// before they have met (refusals.cpp), as they would wait for this one until their deadline; and
// mapped files are looked at (bind_files.cpp).
#pragma once

#include <nanobind/nanobind.h>

#include <span>
#include <string>

namespace cuop::python {

/// The exception being handled has ended a call of `function` before it met anybody. When there is
/// a communicator among `arguments` and the function waits for other ranks, they are told that this
/// rank refuses the call, and why.
void refuse_together(const std::string& function, bool always_waits,
                     std::span<PyObject* const> arguments);

/// Throws Python's FileError.
[[noreturn]] void raise_file_error(const std::string& message);

/// False, with Python's current exception FileError, when an argument of a call that has ended lies
/// in a mapped file that was cut off, or a read since the last such error met a lost page.
bool check_mapped_files(std::span<PyObject* const> arguments);

}  // namespace cuop::python
