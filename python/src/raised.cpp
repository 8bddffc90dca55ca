#include "raised.h"

#include "casters.h"

namespace cuop::python {

namespace {

template <class IsExpected>
Raised taken_if(const IsExpected& is_expected) {
  Raised raised = take_raised();
  if (raised != nullptr && !is_expected(*raised)) throw nb::python_error(*raised);
  return raised;
}

}  // namespace

Raised take_raised() noexcept {
  return PyErr_Occurred() == nullptr ? nullptr : std::make_shared<nb::python_error>();
}

bool says_wrong_kind(const nb::python_error& raised) {
  if (raised.matches(PyExc_TypeError)) return true;
  if (!raised.matches(PyExc_ValueError)) return false;
  static const auto* const shape_error =  // kept: casters may not throw, as imports do
      new nb::object(nb::module_::import_("cuop.errors").attr("ShapeError"));
  return raised.matches(*shape_error);
}

Raised wrong_kind() { return taken_if(says_wrong_kind); }

Raised python_answer() {
  return taken_if([](const nb::python_error& raised) { return raised.matches(PyExc_Exception); });
}

void throw_interrupt(const nb::python_error& raised) {
  if (!raised.matches(PyExc_Exception)) throw nb::python_error(raised);
}

nb::object attribute_of(nb::handle object, const char* name) {
  nb::object found = nb::steal(PyObject_GetAttrString(object.ptr(), name));
  if (found.is_valid()) return found;
  if (PyErr_ExceptionMatches(PyExc_AttributeError) == 0) nb::raise_python_error();
  PyErr_Clear();
  return found;
}

bool has_attribute(nb::handle object, const char* name) {
  return attribute_of(object, name).is_valid();
}

std::optional<int64_t> integer_in(nb::handle object, Raised& why) {
  if (PyBool_Check(object.ptr()) != 0 || PyIndex_Check(object.ptr()) == 0) return std::nullopt;
  const nb::object index = nb::steal(PyNumber_Index(object.ptr()));
  if (!index.is_valid()) {
    why = wrong_kind();
    return std::nullopt;
  }
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
  return overflow == 0 ? std::optional<int64_t>(value) : std::nullopt;
}

std::optional<std::string> text_in(nb::handle object, Raised& why) {
  const nb::object text = nb::steal(PyObject_Str(object.ptr()));
  if (text.is_valid()) return text_of(text);
  // Of containers that hold themselves, or are nested too deeply.
  const bool is_endless = PyErr_ExceptionMatches(PyExc_RecursionError) != 0;
  why = is_endless ? python_answer() : wrong_kind();
  return std::nullopt;
}

}  // namespace cuop::python
