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
  const auto refuse_value = [&](Raised cause, const std::string& entry) {
    refuse<DTypeError>(cat(who, ": an integer or a sequence of integers is needed, given ",
                           class_name(object), entry),
                       std::move(cause));
  };
  const auto integer = [&](nb::handle item) {
    const bool has_index = PyIndex_Check(item.ptr()) != 0;
    const nb::object index = has_index ? nb::steal(PyNumber_Index(item.ptr())) : nb::object();
    if (!index.is_valid()) {
      refuse_value(has_index ? wrong_kind() : nullptr,
                   item.is(object) ? "" : cat(" with ", describe(item)));
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
    refuse_value(nullptr, "");
  }
  // What has items and no length need not end.
  const Py_ssize_t size = PySequence_Size(object.ptr());
  if (size < 0) refuse_value(wrong_kind(), "");
  std::vector<int64_t> result;
  for (nb::handle item : nb::borrow<nb::sequence>(object)) {
    if (std::ssize(result) == size) break;
    result.push_back(integer(item));
  }
  return result;
}

/// str(part) of an argument that is known by its text; an E for one that has none.
template <class E>
std::string printed(nb::handle part, const char* who, nb::handle object) {
  Raised why;
  const std::optional<std::string> text = text_in(part, why);
  if (text) return *text;
  refuse<E>(cat(who, ": ", describe(object), " cannot be printed, and has no name"), why);
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
  if (PyLong_CheckExact(object.ptr()) != 0) return false;
  const nb::object dtype = attribute_of(object, "dtype");
  if (!dtype.is_valid() || !has_attribute(object, "__complex__")) return false;
  const nb::object kind = attribute_of(dtype, "kind");
  return kind.is_valid() && PyUnicode_Check(kind.ptr()) != 0 && text_of(kind) == "c";
}

// Through complex(): Py_complex is no part of Python's stable interface.
std::complex<double> complex_value(const char* who, nb::handle object) {
  PyObject* const complex = reinterpret_cast<PyObject*>(&PyComplex_Type);
  PyObject* const arguments[] = {nullptr, object.ptr()};
  const nb::object value = nb::steal(
      PyObject_Vectorcall(complex, arguments + 1, 1 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
  if (!value.is_valid()) {
    refuse<DTypeError>(cat(who, ": ", class_name(object), " is not a number"), wrong_kind());
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
  for (const char* attribute : {"name", "__name__"}) {
    const nb::object name = attribute_of(object, attribute);
    if (name.is_valid()) return parse_dtype(printed<DTypeError>(name, "dtype", object));
  }
  const std::string text = printed<DTypeError>(object, "dtype", object);
  return parse_dtype(text.substr(text.rfind('.') + 1));
}

Device convert_argument(nb::handle object, TypeTag<Device>) {
  if (nb::isinstance<PyDevice>(object)) return nb::cast<PyDevice>(object).value;
  if (PyLong_Check(object.ptr()) != 0) {
    throw DeviceError(cat("device: ", describe(object),
                          " is an integer, needed is 'cpu', 'cuda' or 'cuda:N'", kSizesInTuple));
  }
  const std::string text = printed<DeviceError>(object, "device", object);
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
  if (PyIndex_Check(object.ptr()) != 0) {
    const nb::object index = nb::steal(PyNumber_Index(object.ptr()));
    if (index.is_valid()) return integer_scalar(who, index);
    wrong_kind();  // as tensors of real numbers say
  }
  const nb::object number = nb::steal(PyNumber_Float(object.ptr()));
  if (!number.is_valid()) {
    // What Python says of a text that is no number, which has no code of its own.
    const bool is_own = PyType_GetSlot(Py_TYPE(object.ptr()), Py_nb_float) != nullptr;
    refuse<DTypeError>(cat(who, ": ", class_name(object), " is not a number"),
                       is_own ? wrong_kind() : python_answer());
  }
  return Scalar(nb::cast<double>(number));
}

Scalar convert_argument(nb::handle object, TypeTag<Scalar>) { return number_of("number", object); }

TypedScalar convert_argument(nb::handle object, TypeTag<TypedScalar>) {
  TypedScalar number{number_of("number", object)};
  if (is_python_number(object)) return number;
  const nb::object dtype = attribute_of(object, "dtype");
  if (!dtype.is_valid() || dtype.is_none()) return number;
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
  return has_attribute(object, "__array__") || has_attribute(object, "__array_interface__") ||
         has_attribute(object, "__array_struct__");
}

nb::handle plain_bool(nb::handle object) noexcept {
  if (PyBool_Check(object.ptr()) != 0 || PyLong_Check(object.ptr()) != 0) return object;
  const std::string name = class_name(object);
  if (name != "bool" && name != "bool_") return object;
  const nb::object numpy = nb::steal(PyImport_ImportModule("numpy"));
  const nb::object type =
      numpy.is_valid() ? nb::steal(PyObject_GetAttrString(numpy.ptr(), "bool_")) : nb::object();
  if (!type.is_valid()) PyErr_Clear();  // then this is none of NumPy's
  if (!object.type().is(type)) return object;
  return nb::handle(PyObject_IsTrue(object.ptr()) != 0 ? Py_True : Py_False);
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
