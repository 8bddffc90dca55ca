// Words for errors: what was given, and who speaks.
#pragma once

#include <nanobind/nanobind.h>

#include <exception>
#include <string>
#include <type_traits>

namespace cuop::python {

namespace nb = nanobind;

/// The name of an object's class, without its module.
std::string class_name(nb::handle object) noexcept;

/// What was given, in words: a short scalar itself, of everything else the name of its class.
std::string describe(nb::handle object);

/// The exception being handled, its message begun with `who`. To be called in a catch block.
std::exception_ptr renamed(const std::string& who) noexcept;

/// work(), an error of which begins with `who`, a text or a function that returns it, in place of
/// the step that raised it.
template <class Who, class Work>
decltype(auto) named_call(const Who& who, Work&& work) {
  try {
    return work();
  } catch (...) {
    if constexpr (std::is_invocable_v<const Who&>) {
      std::rethrow_exception(renamed(who()));
    } else {
      std::rethrow_exception(renamed(who));
    }
  }
}

}  // namespace cuop::python
