#include "casters.h"

#include "cuop/core/text.h"

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

std::string message_of(nb::handle object) noexcept {
  const nb::object text = nb::steal(PyObject_Str(object.ptr()));
  if (text.is_valid()) return text_of(text);
  PyErr_Clear();
  const nb::object name = nb::steal(PyObject_GetAttrString(object.type().ptr(), "__name__"));
  PyErr_Clear();
  const bool has_name = name.is_valid() && PyUnicode_Check(name.ptr()) != 0;
  return cat('<', has_name ? text_of(name) : "object", " whose str() raises>");
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

Py_ssize_t length_or_none(nb::handle sequence) noexcept {
  const Py_ssize_t length = PySequence_Size(sequence.ptr());
  if (length < 0) PyErr_Clear();
  return length;
}

nb::object items_of(nb::handle sequence) noexcept {
  PyObject* object = sequence.ptr();
  if (PyUnicode_Check(object) || PyBytes_Check(object) || PySequence_Check(object) == 0) return {};
  if (PySequence_Size(object) < 0) {  // without a length it may have no end
    PyErr_Clear();
    return {};
  }
  nb::object items = nb::steal(PySequence_Tuple(object));
  if (!items.is_valid()) PyErr_Clear();
  return items;
}

}  // namespace cuop::python
