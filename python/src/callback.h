// Python functions that C++ keeps and calls from any thread.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <utility>

#include "cuop/core/error.h"
#include "cuop/core/interrupt.h"
#include "cuop/core/text.h"

namespace cuop::python {

namespace nb = nanobind;

/// ExecutionError when Python is ending, as in a finalizer that it runs then: threads that `who`
/// would start or wait for get the GIL no more.
inline void check_python_goes_on(const char* who) {
  if (Py_IsInitialized() == 0) throw ExecutionError(cat(who, ": Python is ending"));
}

/// A Python function that C++ threads may call and drop; it is left alone when Python is ending.
inline std::shared_ptr<nb::object> shared_function(nb::object function) {
  return {new nb::object(std::move(function)), [](nb::object* held) {
            if (Py_IsInitialized() == 0) return;
            const nb::gil_scoped_acquire gil;
            delete held;
          }};
}

/// Keeps what is to end the call of cuop that is going on, with the GIL: check_interrupt() finds
/// it, and it is raised where an Interrupted comes back to Python.
void keep_interrupt(nb::python_error&& error);

/// Calls it, with the GIL, unless Python is ending. An Exception is reported as unraisable in
/// `where` and goes no further; KeyboardInterrupt and others that are to end the program, which
/// handlers of signals raise, are kept as interrupts. Returns false then: who may throw throws
/// Interrupted.
template <class... Arguments>
bool call_shared(const nb::object& function, const char* where, const Arguments&... arguments) {
  if (Py_IsInitialized() == 0) return true;
  const nb::gil_scoped_acquire gil;
  try {
    function(arguments...);
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_Exception)) {
      keep_interrupt(std::move(error));
      return false;
    }
    error.discard_as_unraisable(where);
  }
  return true;
}

/// The same for the work of a call, which it ends.
template <class... Arguments>
void call_at_work(const nb::object& function, const char* where, const Arguments&... arguments) {
  if (!call_shared(function, where, arguments...)) throw Interrupted();
}

}  // namespace cuop::python
