// Python's text, sequences and numbers as C++ values. nanobind's own casters take neither text that
// UTF-8 has no bytes for nor a list that changes while its items are converted, and lose what an
// object's own code raises: these leave it Python's current exception.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/detail/nb_list.h>

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace cuop::python {

namespace nb = nanobind;

/// The UTF-8 bytes of a str, which this does not fail for: escaped bytes (U+DC80 to U+DCFF, as in
/// the names of files) are those bytes, as os.fsencode has it; other lone surrogates are written
/// as Python's repr writes them.
std::string text_of(nb::handle str) noexcept;
/// A text that errors quote, which would end at a zero: zeros are written as \x00.
std::string without_zeros(std::string text);
/// str(object) in the same way, for messages; says so when the object cannot be printed. Throws
/// what that raises only when it is no Exception.
std::string message_of(nb::handle object);
/// The same of an exception that is being handled: it stays the one that is raised, and what is no
/// Exception ends the work of the main thread when that looks for interrupts.
std::string message_of_raised(nb::handle exception) noexcept;
/// The name of a class, without its module.
std::string name_of_class(nb::handle type) noexcept;
/// The str of some bytes, as os.fsdecode has it: what is no UTF-8 becomes escaped bytes. Null with
/// Python's error when there is no memory.
PyObject* make_text(std::string_view bytes) noexcept;
/// The str of a message, in which what is no UTF-8 is written as \x80, so that it can be printed.
nb::object make_message(std::string_view bytes);

/// The items of a sequence other than str and bytes as a tuple, which holds them whatever becomes
/// of the sequence; invalid when it is none, with Python's error when it raises.
nb::object items_of(nb::handle sequence) noexcept;

}  // namespace cuop::python

namespace nanobind::detail {

template <>
struct type_caster<std::string> {
  NB_TYPE_CASTER(std::string, const_name("str"))

  bool from_python(handle source, auto, cleanup_list*) noexcept {
    if (PyUnicode_Check(source.ptr()) == 0) return false;
    value = cuop::python::text_of(source);
    return true;
  }
  static handle from_cpp(const std::string& source, auto, cleanup_list*) noexcept {
    return cuop::python::make_text(source);
  }
};

template <>
struct type_caster<std::string_view> {
  NB_TYPE_CASTER(std::string_view, const_name("str"))

  bool from_python(handle source, auto, cleanup_list*) noexcept {
    if (PyUnicode_Check(source.ptr()) == 0) return false;
    text_ = cuop::python::text_of(source);
    value = text_;
    return true;
  }
  static handle from_cpp(std::string_view source, auto, cleanup_list*) noexcept {
    return cuop::python::make_text(source);
  }

 private:
  std::string text_;
};

/// Integers: Python's, NumPy's and whatever has __index__, but not bool, which nanobind would take.
template <class T>
struct IntegerCaster {
  NB_TYPE_CASTER(T, const_name("int"))

  bool from_python(handle source, auto, cleanup_list*) noexcept {
    if (PyBool_Check(source.ptr()) || PyIndex_Check(source.ptr()) == 0) return false;
    const object index = steal(PyNumber_Index(source.ptr()));
    if (!index.is_valid()) return false;
    const auto number = value_of(index.ptr());
    const bool is_beyond = PyErr_Occurred() != nullptr;  // OverflowError
    if (is_beyond) PyErr_Clear();
    if (is_beyond || !std::in_range<T>(number)) return false;
    value = static_cast<T>(number);
    return true;
  }
  static handle from_cpp(T source, auto, cleanup_list*) noexcept {
    if constexpr (std::is_signed_v<T>) {
      return PyLong_FromLongLong(source);
    } else {
      return PyLong_FromUnsignedLongLong(source);
    }
  }

 private:
  static auto value_of(PyObject* integer) noexcept {
    if constexpr (std::is_signed_v<T>) {
      return PyLong_AsLongLong(integer);
    } else {
      return PyLong_AsUnsignedLongLong(integer);
    }
  }
};
template <>
struct type_caster<int64_t> : IntegerCaster<int64_t> {};
template <>
struct type_caster<uint64_t> : IntegerCaster<uint64_t> {};
template <>
struct type_caster<int> : IntegerCaster<int> {};

/// Real numbers: Python's, NumPy's and whatever has __float__ or __index__.
template <>
struct type_caster<double> {
  NB_TYPE_CASTER(double, const_name("float"))

  bool from_python(handle source, auto, cleanup_list*) noexcept {
    value = PyFloat_AsDouble(source.ptr());
    if (value != -1.0 || PyErr_Occurred() == nullptr) return true;
    if (PyLong_CheckExact(source.ptr()) != 0) PyErr_Clear();  // Python's own word for a large one
    return false;
  }
  static handle from_cpp(double source, auto, cleanup_list*) noexcept {
    return PyFloat_FromDouble(source);
  }
};

/// Converting an item may run Python, which may change the list, and a sequence may make its items
/// on demand: they are held until the call has ended, for entries that point into them.
template <class Entry>
struct type_caster<std::vector<Entry>> : list_caster<std::vector<Entry>, Entry> {
  bool from_python(handle source, uint32_t flags, cleanup_list* cleanup) noexcept {
    items_ = cuop::python::items_of(source);
    return items_.is_valid() &&
           list_caster<std::vector<Entry>, Entry>::from_python(items_, flags, cleanup);
  }

 private:
  object items_;
};

}  // namespace nanobind::detail
