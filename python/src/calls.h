// Words for calls whose arguments are of the wrong kind: what the type casters know of the call
// that they work for, and the hook that explains a call that no signature fits.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <exception>
#include <span>
#include <string>

namespace cuop::python {

namespace nb = nanobind;

/// The name of an object's class, without its module.
std::string class_name(nb::handle object);

/// What was given, in words: a short scalar itself, of everything else the name of its class.
std::string describe(nb::handle object);

/// The exception being handled, its message begun with the function that is being called and the
/// name of the argument for which `object` was given. To be called in a catch block.
std::exception_ptr name_argument(nb::handle object) noexcept;

/// The exception being handled, its message begun with `who`. To be called in a catch block.
std::exception_ptr renamed(const std::string& who) noexcept;

/// work(), an error of which begins with `who` in place of the step that raised it.
template <class Work>
decltype(auto) named_call(const char* who, Work&& work) {
  try {
    return work();
  } catch (...) {
    std::rethrow_exception(renamed(who));
  }
}

/// Notes that an integer was refused because it is not in [low, high].
void note_range(int64_t low, int64_t high) noexcept;

/// What was given for the arguments of the call that is being made, by position and by name; empty
/// outside of calls.
std::span<PyObject* const> arguments_of_call() noexcept;

/// Lets every function and method of a finished module explain what nanobind would answer with a
/// list of signatures. See cuop/_calls.py for the words.
void explain_calls(nb::module_& m);

}  // namespace cuop::python
