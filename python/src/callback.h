// Python functions that C++ keeps and calls from any thread.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <utility>

namespace cuop::python {

namespace nb = nanobind;

/// A Python function that C++ threads may call and drop; it is left alone when Python is ending.
inline std::shared_ptr<nb::object> shared_function(nb::object function) {
  return {new nb::object(std::move(function)), [](nb::object* held) {
            if (Py_IsInitialized() == 0) return;
            const nb::gil_scoped_acquire gil;
            delete held;
          }};
}

/// Calls it, with the GIL, unless Python is ending. What it raises is reported as unraisable in
/// `where` and goes no further.
template <class... Arguments>
void call_shared(const nb::object& function, const char* where, const Arguments&... arguments) {
  if (Py_IsInitialized() == 0) return;
  const nb::gil_scoped_acquire gil;
  try {
    function(arguments...);
  } catch (nb::python_error& error) {
    error.discard_as_unraisable(where);
  }
}

}  // namespace cuop::python
