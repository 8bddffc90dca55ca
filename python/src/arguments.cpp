// Conversion of Python arguments that need no look at array memory (array_import.cpp does that).
#include <complex>

#include "bindings.h"
#include "cuop/backend/current_device.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop::python {

namespace {

/// What f(2, 3) in place of f((2, 3)) is told.
constexpr const char* kSizesInTuple = "; the sizes of a shape are given as one tuple";

std::vector<int64_t> integers(const char* who, nb::handle object) {
  const auto integer = [&](nb::handle item) {
    nb::object index = nb::steal(PyNumber_Index(item.ptr()));
    if (!index.is_valid()) {
      if (PyErr_ExceptionMatches(PyExc_Exception) == 0) nb::raise_python_error();  // Ctrl-C
      PyErr_Clear();
      const std::string entry = item.is(object) ? "" : cat(" with ", describe(item));
      throw DTypeError(cat(who, ": an integer or a sequence of integers is needed, given ",
                           class_name(object), entry));
    }
    const long long value = PyLong_AsLongLong(index.ptr());
    if (value == -1 && PyErr_Occurred() != nullptr) {
      PyErr_Clear();
      throw ShapeError(cat(who, ": a value does not fit in 64 bits"));
    }
    return static_cast<int64_t>(value);
  };
  if (PyIndex_Check(object.ptr()) != 0) return {integer(object)};
  if (PySequence_Check(object.ptr()) == 0 || nb::isinstance<nb::str>(object)) {
    throw DTypeError(
        cat(who, ": an integer or a sequence of integers is needed, given ", class_name(object)));
  }
  // What has items and no length need not end.
  const Py_ssize_t size = PySequence_Size(object.ptr());
  if (size < 0) {
    if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) throw nb::python_error();
    PyErr_Clear();
    throw DTypeError(
        cat(who, ": an integer or a sequence of integers is needed, given ", class_name(object)));
  }
  std::vector<int64_t> result;
  for (nb::handle item : nb::borrow<nb::sequence>(object)) {
    if (std::ssize(result) == size) break;
    result.push_back(integer(item));
  }
  return result;
}

/// An integer of Python, of which very long ones are told by their length.
std::string describe_integer(nb::handle integer) {
  const auto bits = nb::cast<int64_t>(integer.attr("bit_length")());
  return bits <= 128 ? message_of(integer) : cat("an integer of ", bits, " bits");
}

Scalar integer_scalar(const char* who, nb::handle index) {
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
  if (overflow == 0) return Scalar(static_cast<int64_t>(value));
  if (overflow > 0) {
    const unsigned long long large = PyLong_AsUnsignedLongLong(index.ptr());
    if (PyErr_Occurred() == nullptr) return Scalar(static_cast<uint64_t>(large));
    PyErr_Clear();
  }
  throw OverflowError(cat(who, ": ", describe_integer(index), " is beyond 64 bits, which hold ",
                          std::numeric_limits<int64_t>::min(), " to ",
                          std::numeric_limits<uint64_t>::max(), "; give it as a float"));
}

/// NumPy's complex scalars other than complex128, which Python does not count as complex.
bool is_complex_scalar(nb::handle object) {
  if (PyComplex_Check(object.ptr())) return true;
  if (!nb::hasattr(object, "dtype") || !nb::hasattr(object, "__complex__")) return false;
  const nb::object dtype = object.attr("dtype");
  return nb::hasattr(dtype, "kind") && message_of(dtype.attr("kind")) == "c";
}

// Through complex(): Py_complex is no part of Python's stable interface.
std::complex<double> complex_value(const char* who, nb::handle object) {
  const nb::handle complex(reinterpret_cast<PyObject*>(&PyComplex_Type));
  nb::object value;
  try {
    value = complex(object);
  } catch (const nb::python_error& error) {
    // Of several elements; an exception of the object's own goes to the user.
    const nb::object shape_error = nb::module_::import_("cuop.errors").attr("ShapeError");
    if (!error.matches(PyExc_TypeError) && !error.matches(shape_error)) throw;
    throw DTypeError(cat(who, ": ", class_name(object), " is not a number"));
  }
  return {PyComplex_RealAsDouble(value.ptr()), PyComplex_ImagAsDouble(value.ptr())};
}

}  // namespace

DType convert_argument(nb::handle object, TypeTag<DType>) {
  if (nb::isinstance<PyDType>(object)) return nb::cast<PyDType>(object).value;
  if (nb::isinstance<nb::str>(object)) return parse_dtype(text_of(object));
  if (PyLong_Check(object.ptr()) != 0) {
    throw DTypeError(cat("dtype: ", describe(object),
                         " is an integer, needed is a dtype or its name", kSizesInTuple));
  }
  if (object.is(nb::handle(reinterpret_cast<PyObject*>(&PyFloat_Type)))) return DType::kFloat32;
  if (object.is(nb::handle(reinterpret_cast<PyObject*>(&PyLong_Type)))) return DType::kInt64;
  if (object.is(nb::handle(reinterpret_cast<PyObject*>(&PyBool_Type)))) return DType::kBool;
  if (object.is(nb::handle(reinterpret_cast<PyObject*>(&PyComplex_Type)))) return DType::kComplex64;
  // NumPy dtypes and scalar types have a name; torch and jax dtypes print as "torch.float32".
  if (nb::hasattr(object, "name")) return parse_dtype(message_of(object.attr("name")));
  if (nb::hasattr(object, "__name__")) return parse_dtype(message_of(object.attr("__name__")));
  const std::string text = message_of(object);
  return parse_dtype(text.substr(text.rfind('.') + 1));
}

Device convert_argument(nb::handle object, TypeTag<Device>) {
  if (nb::isinstance<PyDevice>(object)) return nb::cast<PyDevice>(object).value;
  if (PyLong_Check(object.ptr()) != 0) {
    throw DeviceError(cat("device: ", describe(object),
                          " is an integer, needed is 'cpu', 'cuda' or 'cuda:N'", kSizesInTuple));
  }
  const std::string text = message_of(object);
  return text == "cuda" ? backend::current_gpu() : parse_device(text);
}

Shape convert_argument(nb::handle object, TypeTag<Shape>) {
  return Shape(integers("shape", object));
}

Shape shape_of(const nb::args& sizes) {
  const bool is_one_sequence = sizes.size() == 1 && PyIndex_Check(nb::handle(sizes[0]).ptr()) == 0;
  return named_argument<Shape>(is_one_sequence ? nb::handle(sizes[0]) : nb::handle(sizes), "sizes");
}

Axes convert_argument(nb::handle object, TypeTag<Axes>) {
  if (object.is_none()) return {};
  return {integers("axis", object)};
}

WindowOffset convert_argument(nb::handle object, TypeTag<WindowOffset>) {
  if (PyBool_Check(object.ptr())) {
    throw DTypeError("offset: an integer or a sequence of integers is needed, given bool");
  }
  const std::vector<int64_t> values = integers("offset", object);
  return PyIndex_Check(object.ptr()) != 0 ? WindowOffset(values.front())
                                          : WindowOffset(Dims(values));
}

Scalar number_of(const char* who, nb::handle object) {
  if (nb::isinstance<nb::bool_>(object)) return Scalar(nb::cast<bool>(object));
  if (nb::isinstance<nb::float_>(object)) return Scalar(nb::cast<double>(object));
  if (is_complex_scalar(object)) return Scalar(complex_value(who, object));
  const nb::object index = nb::steal(PyNumber_Index(object.ptr()));
  if (index.is_valid()) return integer_scalar(who, index);
  PyErr_Clear();
  nb::object number = nb::steal(PyNumber_Float(object.ptr()));
  if (!number.is_valid()) {
    PyErr_Clear();
    throw DTypeError(cat(who, ": ", class_name(object), " is not a number"));
  }
  return Scalar(nb::cast<double>(number));
}

Scalar convert_argument(nb::handle object, TypeTag<Scalar>) { return number_of("number", object); }

TypedScalar convert_argument(nb::handle object, TypeTag<TypedScalar>) {
  TypedScalar number{number_of("number", object)};
  const nb::object dtype = nb::getattr(object, "dtype", nb::none());
  if (dtype.is_none()) return number;
  try {
    number.dtype = convert_argument(dtype, TypeTag<DType>{});
  } catch (const DTypeError&) {  // longdouble and the like count as Python's
  }
  return number;
}

void check_count(int64_t count, DType dtype, const char* place) {
  const int64_t bytes = std::max(itemsize(dtype), itemsize(DType::kFloat64));  // computed in
  checked_multiply(std::max(count, int64_t{0}), bytes, place);
}

bool has_numpy_elements(nb::handle object) {
  return nb::hasattr(object, "__array__") || nb::hasattr(object, "__array_interface__") ||
         nb::hasattr(object, "__array_struct__");
}

nb::handle plain_bool(nb::handle object) noexcept {
  if (PyBool_Check(object.ptr()) != 0 || PyLong_Check(object.ptr()) != 0) return object;
  const std::string name = class_name(object);
  if (name != "bool" && name != "bool_") return object;
  if (message_of(nb::getattr(object.type(), "__module__", nb::none())) != "numpy") return object;
  const int is_true = PyObject_IsTrue(object.ptr());
  return is_true < 0 ? object : nb::handle(is_true != 0 ? Py_True : Py_False);
}

bool is_python_number(nb::handle object) {
  return PyFloat_CheckExact(object.ptr()) || PyLong_CheckExact(object.ptr()) ||
         PyBool_Check(object.ptr()) || PyComplex_CheckExact(object.ptr());
}

IntTuple to_tuple(const Dims& dims) {
  nb::list list;
  for (int64_t value : dims) list.append(value);
  return nb::borrow<IntTuple>(nb::tuple(list));
}

}  // namespace cuop::python
