// Mapped files under the calls of this module.
#pragma once

#include <nanobind/nanobind.h>

#include <span>

namespace cuop::python {

/// False, with Python's current exception FileError, when an argument of a call that has ended lies
/// in a mapped file that was cut off, or a read since the last such error met a lost page.
bool check_mapped_files(std::span<PyObject* const> arguments);

}  // namespace cuop::python
