#include "casters.h"

#include "callback.h"
#include "cuop/core/text.h"
#include "raised.h"

namespace cuop::python {

namespace {

std::string copied(const char* bytes, Py_ssize_t size) {
  return size > 0 ? std::string(bytes, static_cast<size_t>(size)) : std::string();
}

}  // namespace

std::string text_of(nb::handle str) noexcept {
  Py_ssize_t size = 0;
  if (const char* text = PyUnicode_AsUTF8AndSize(str.ptr(), &size)) return copied(text, size);
  PyErr_Clear();
  for (const char* errors : {"surrogateescape", "backslashreplace"}) {
    const nb::object bytes = nb::steal(PyUnicode_AsEncodedString(str.ptr(), "utf-8", errors));
    if (bytes.is_valid()) return copied(PyBytes_AsString(bytes.ptr()), PyBytes_Size(bytes.ptr()));
    PyErr_Clear();
  }
  return "";  // no memory
}

std::string without_zeros(std::string text) {
  for (size_t at = text.find('\0'); at != std::string::npos; at = text.find('\0', at)) {
    text.replace(at, 1, "\\x00");
  }
  return text;
}

std::string message_of(nb::handle object) {
  const nb::object text = nb::steal(PyObject_Str(object.ptr()));
  if (text.is_valid()) return text_of(text);
  python_answer();
  return cat('<', name_of_class(object.type()), " whose str() raises>");
}

std::string message_of_raised(nb::handle exception) noexcept {
  try {
    return message_of(exception);
  } catch (nb::python_error& interrupt) {
    keep_interrupt(std::move(interrupt));
    return cat('<', name_of_class(exception.type()), " whose str() was interrupted>");
  }
}

std::string name_of_class(nb::handle type) noexcept {
  // Not its __name__, which may be what a class of classes makes of it.
  const nb::object name = nb::steal(PyType_GetName(reinterpret_cast<PyTypeObject*>(type.ptr())));
  if (name.is_valid()) return text_of(name);
  PyErr_Clear();
  return "object";  // no memory
}

PyObject* make_text(std::string_view bytes) noexcept {
  return PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()),
                              "surrogateescape");
}

nb::object make_message(std::string_view bytes) {
  const nb::object text = nb::steal(PyUnicode_DecodeUTF8(
      bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "backslashreplace"));
  if (!text.is_valid()) nb::raise_python_error();
  return text;
}

nb::object items_of(nb::handle sequence) noexcept {
  PyObject* object = sequence.ptr();
  if (PyUnicode_Check(object) || PyBytes_Check(object) || PySequence_Check(object) == 0) return {};
  if (PySequence_Size(object) < 0) return {};  // without a length it may have no end
  return nb::steal(PySequence_Tuple(object));
}

}  // namespace cuop::python
