// Methods that tensors and distributed ones have alike.
#pragma once

#include <string_view>

#include "bindings.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop::python {

/// x[0], x[1], ... of a tensor or a distributed one.
template <class T>
nb::object iterate(nb::handle self) {
  if (nb::cast<const T&>(self).ndim() == 0) {
    throw DTypeError("iter: a tensor of 0 dimensions cannot be iterated over");
  }
  return nb::steal(PySeqIter_New(self.ptr()));
}
/// Of its first dimension.
template <class T>
int64_t length_of(const T& x) {
  if (x.ndim() == 0) throw DTypeError("len: a tensor of 0 dimensions has no length");
  return x.shape(0);
}

/// ShapeError unless x, of which `who` makes a Python number, has one element.
template <class T>
void check_one_element(const T& x, std::string_view who) {
  if (x.size() == 1) return;
  throw ShapeError(cat(who, ": the tensor has ", x.size(), " elements, needed is 1",
                       who == "bool" ? "; its any() or all() makes one of them" : ""));
}

/// As Python formats the element of a tensor that has just one; without a format as str() does.
template <class T>
nb::object formatted(nb::handle self, const nb::str& spec) {
  const nb::module_ builtins = nb::module_::import_("builtins");
  if (nb::len(spec) == 0) return builtins.attr("str")(self);
  check_one_element(nb::cast<const T&>(self), "format");
  return builtins.attr("format")(self.attr("item")(), spec);
}
inline constexpr const char* kFormatStub = "def __format__(self, format_spec: str, /) -> str";

/// Whether some element equals the value, as in NumPy.
template <class T>
bool contains(nb::handle self, nb::handle value) {
  const nb::object same = nb::steal(PyObject_RichCompare(self.ptr(), value.ptr(), Py_EQ));
  if (!same.is_valid()) throw nb::python_error();
  const bool is_compared = nb::isinstance<T>(same);  // else with something of another kind
  const nb::object answer = is_compared ? same.attr("any")().attr("item")() : same;
  const int is_true = PyObject_IsTrue(answer.ptr());
  if (is_true < 0) throw nb::python_error();
  return is_true != 0;
}
inline constexpr const char* kContainsStub = "def __contains__(self, value: object, /) -> bool";

}  // namespace cuop::python
