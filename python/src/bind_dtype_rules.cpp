// What dtypes become together, what kinds they are, and what their numbers can be.
#include <cmath>

#include "binders.h"
#include "cuop/core/text.h"

namespace cuop::python {

namespace {

/// The dtype itself, or that of an array.
DType dtype_of(nb::handle object, const char* argument) {
  const bool is_named = nb::isinstance<PyDType>(object) || nb::isinstance<nb::str>(object) ||
                        PyType_Check(object.ptr()) != 0;
  const bool is_array =
      !is_named && (nb::isinstance<Tensor>(object) || has_attribute(object, "__dlpack__") ||
                    nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object) ||
                    has_numpy_elements(object));
  return is_array ? named_argument<Unplaced>(object, argument).tensor.dtype()
                  : named_argument<DType>(object, argument);
}

PyDType result_type(const nb::args& given) {
  std::optional<DType> dtype;
  std::optional<Scalar> highest;  // the number of the highest kind
  for (nb::handle each : given) {
    if (is_python_number(each)) {
      const auto number = named_argument<Scalar>(each, "arrays_and_dtypes");
      if (!highest || number.natural_dtype() > highest->natural_dtype()) highest = number;
    } else {
      const DType next = dtype_of(each, "arrays_and_dtypes");
      dtype = dtype ? promote(*dtype, next) : next;
    }
  }
  if (!dtype) {
    throw DTypeError("result_type: needed is at least one array or dtype, given are " +
                     std::string(highest ? "only numbers" : "none"));
  }
  return {highest ? highest->promote_with(*dtype) : *dtype};
}

struct Kind {
  const char* name;
  bool (*has)(DType);
};
constexpr Kind kKinds[] = {
    {"bool", is_bool},
    {"signed integer", is_signed_integer},
    {"unsigned integer", is_unsigned_integer},
    {"integral", is_integer},
    {"real floating", is_floating},
    {"complex floating", is_complex},
    {"numeric", [](DType d) { return !is_bool(d); }},
};

bool is_of_kind(DType dtype, nb::handle kind) {
  if (nb::isinstance<nb::tuple>(kind)) {
    for (nb::handle each : nb::borrow<nb::tuple>(kind)) {
      if (is_of_kind(dtype, each)) return true;
    }
    return false;
  }
  if (nb::isinstance<nb::str>(kind)) {
    const std::string text = text_of(kind);
    for (const auto& [name, has] : kKinds) {
      if (text == name) return has(dtype);
    }
    if (text.find(' ') != std::string::npos) {
      std::string known;
      for (const auto& [name, has] : kKinds) known += cat(known.empty() ? "'" : ", '", name, "'");
      throw DTypeError(cat("isdtype: kind '", text, "' is unknown; known are ", known,
                           ", dtypes, and tuples of them"));
    }
  }
  return named_argument<DType>(kind, "kind") == dtype;
}

/// What IEEE 754 says of a binary format, or of bfloat16.
struct FloatInfo {
  DType dtype;
  int digits, least_exponent;  ///< of the significand, and of the smallest normal number

  explicit FloatInfo(DType d) : dtype(real_dtype(d)) {
    if (!is_floating(dtype)) {
      throw DTypeError(cat("finfo: dtype ", d,
                           " is not supported; supported are float16, "
                           "bfloat16, float32, float64, complex64, complex128"));
    }
    switch (dtype) {
      case DType::kFloat16:
        digits = 11, least_exponent = -14;
        break;
      case DType::kBFloat16:
        digits = 8, least_exponent = -126;
        break;
      case DType::kFloat32:
        digits = 24, least_exponent = -126;
        break;
      default:
        digits = 53, least_exponent = -1022;
    }
  }
  double eps() const { return std::ldexp(1.0, 1 - digits); }
  double largest() const { return std::ldexp(2.0 - eps(), 1 - least_exponent); }
  double smallest_normal() const { return std::ldexp(1.0, least_exponent); }
};

struct IntegerInfo {
  DType dtype;

  explicit IntegerInfo(DType d) : dtype(d) {
    if (!is_integer(d)) {
      throw DTypeError(cat("iinfo: dtype ", d,
                           " is not supported; supported are int8, int16, "
                           "int32, int64, uint8, uint16, uint32, uint64"));
    }
  }
};

template <class Info>
Class<Info> bind_info(Module& m, const char* name, const char* doc) {
  Class<Info> type(m, name, doc);
  type.def(
          "__init__",
          [](Info* self, nb::handle given) { new (self) Info(dtype_of(given, "type")); }, "type"_a,
          nb::sig("def __init__(self, type: DTypeLike | ArrayLike) -> None"))
      .def_prop_ro(
          "dtype", [](const Info& info) { return PyDType{info.dtype}; },
          "The dtype, of a complex one that of its parts.")
      .def_prop_ro(
          "bits", [](const Info& info) { return 8 * itemsize(info.dtype); }, "Bits of a number.")
      .def("__repr__",
           [name](const Info& info) { return cat("cuop.", name, "('", info.dtype, "')"); });
  return type;
}

}  // namespace

void bind_dtype_rules(Module& m) {
  m.def("result_type", &result_type, "arrays_and_dtypes"_a,
        nb::sig("def result_type(*arrays_and_dtypes: ArrayLike | DTypeLike) -> dtype"),
        "The dtype that tensors, arrays and dtypes promote to (Array API table, extended as NumPy "
        "does); Python numbers follow them, as in arithmetic. Raises DTypeError.");
  m.def(
      "can_cast",
      [](nb::handle from, Arg<DType> to) { return promote(dtype_of(from, "from_"), to) == *to; },
      "from_"_a, "to"_a,
      nb::sig("def can_cast(from_: DTypeLike | ArrayLike, to: DTypeLike) -> bool"),
      "Whether the dtype, or that of a tensor, promotes to `to`: no value of it is lost there, but "
      "for digits of int64 and uint64 in float64.");
  m.def(
      "isdtype", [](Arg<DType> dtype, nb::handle kind) { return is_of_kind(dtype, kind); },
      "dtype"_a, "kind"_a,
      nb::sig("def isdtype(dtype: DTypeLike, kind: DTypeLike | tuple[DTypeLike, ...]) -> bool"),
      "Whether a dtype is of a kind: 'bool', 'signed integer', 'unsigned integer', 'integral', "
      "'real floating', 'complex floating', 'numeric' (all but bool), a dtype, or one of a tuple "
      "of these. Raises DTypeError.");
  bind_info<FloatInfo>(m, "finfo",
                       "Limits of a floating or complex dtype, or of a tensor's. Raises "
                       "DTypeError.")
      .def_prop_ro("eps", &FloatInfo::eps, "Distance from 1 to the next larger number.")
      .def_prop_ro("max", &FloatInfo::largest, "Largest finite number.")
      .def_prop_ro(
          "min", [](const FloatInfo& info) { return -info.largest(); },
          "Smallest finite number, which is negative.")
      .def_prop_ro("smallest_normal", &FloatInfo::smallest_normal,
                   "Smallest positive number with all digits.")
      .def_prop_ro("tiny", &FloatInfo::smallest_normal, "`smallest_normal`.");
  bind_info<IntegerInfo>(m, "iinfo",
                         "Limits of an integer dtype, or of a tensor's. Raises DTypeError.")
      .def_prop_ro(
          "max", [](const IntegerInfo& info) { return integer_range(info.dtype).high; },
          "Largest number.")
      .def_prop_ro(
          "min", [](const IntegerInfo& info) { return integer_range(info.dtype).low; },
          "Smallest number.");
}

}  // namespace cuop::python
