// Python numbers, and nested lists and tuples of them, as tensors. NumPy parses them, but where it
// would make float64 of integers that float64 does not hold they are taken one by one.
#include <algorithm>
#include <cmath>

#include "cuop/core/long_loop.h"
#include "cuop/core/text.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "exchange.h"

namespace cuop::python {

namespace {

/// Integers up to here are float64 numbers.
constexpr double kWholeDoubles = 9007199254740992.0;

bool is_list(nb::handle object) {
  return PyList_CheckExact(object.ptr()) || PyTuple_CheckExact(object.ptr());
}

/// How many numbers nested lists hold, if they are regular; 0 of what is nested deeper than
/// `levels`, as a list that holds itself is.
double count_of(nb::handle object, int levels) {
  if (!is_list(object)) return 1;
  const auto length = static_cast<double>(nb::len(object));
  return length == 0 || levels == 0 ? 0 : length * count_of(object[0], levels - 1);
}

/// numpy.concatenate, which hears no interrupt: of alike parts one by one.
nb::object joined(const nb::list& parts, int64_t length) {
  const auto rest_of = [](nb::handle part) {
    return nb::tuple(part.attr(
        "shape")[nb::slice(int64_t{1}, nb::cast<int64_t>(part.attr("ndim")), int64_t{1})]);
  };
  const nb::object dtype = parts[0].attr("dtype");
  const nb::tuple rest = rest_of(parts[0]);
  for (nb::handle part : parts) {
    if (!rest_of(part).equal(rest) || !part.attr("dtype").equal(dtype)) {
      return numpy("concatenate")(parts);
    }
  }
  nb::object all = numpy("empty")(nb::make_tuple(length) + rest, dtype);
  int64_t begin = 0;
  for (nb::handle part : parts) {
    check_interrupt();
    const int64_t end = begin + static_cast<int64_t>(nb::len(part));
    all[nb::slice(begin, end, int64_t{1})] = part;
    begin = end;
  }
  return all;
}

/// numpy.asarray, which hears no interrupt: of long lists part by part.
nb::object parsed_parts(nb::handle object, int levels = kMaxDims) {
  const double count = count_of(object, levels);
  if (count <= double{kLoopPiece}) return numpy("asarray")(object);
  const auto length = static_cast<int64_t>(nb::len(object));
  const auto each = static_cast<int64_t>(std::min(count / static_cast<double>(length), 0x1p60));
  const int64_t step = std::max<int64_t>(1, kLoopPiece / each);
  nb::list parts;
  for (int64_t i = 0; i < length; i += step) {
    check_interrupt();
    if (each > kLoopPiece) {
      parts.append(numpy("expand_dims")(parsed_parts(object[i], levels - 1), 0));
    } else {
      parts.append(numpy("asarray")(object[nb::slice(i, std::min(length, i + step), int64_t{1})]));
    }
  }
  return joined(parts, length);
}

/// The lists with what NumPy takes in place of tensors that it does not.
nb::object lists_for_numpy(nb::handle object, Lookout& lookout, int levels = kMaxDims) {
  lookout.after(1);
  if (nb::isinstance<Tensor>(object) && nb::inst_ready(object)) {
    return nb::cast(for_numpy(nb::cast<const Tensor&>(object)));
  }
  const bool is_nested = PyList_Check(object.ptr()) != 0 || PyTuple_Check(object.ptr()) != 0;
  if (!is_nested || levels == 0) return nb::borrow(object);
  nb::list entries;
  for (nb::handle entry : nb::tuple(object)) {
    entries.append(lists_for_numpy(entry, lookout, levels - 1));
  }
  return entries;
}

nb::object parsed(nb::handle object) {
  const nb::module_ errors = nb::module_::import_("cuop.errors");
  try {
    try {
      return parsed_parts(object);
    } catch (nb::python_error& error) {  // looked through only now: lists may be long
      if (!error.matches(errors.attr("DTypeError"))) throw;
    }
    Lookout lookout;
    return parsed_parts(lists_for_numpy(object, lookout));
  } catch (nb::python_error& error) {
    if (error.matches(errors.attr("Error"))) throw;  // of an entry
    // What the object itself raises, and what ends a program, is not about shapes.
    if (!error.matches(PyExc_ValueError) && !error.matches(PyExc_TypeError)) throw;
    refuse<ShapeError>(
        cat("tensor: the nested list has no regular shape: ", message_of(error.value())),
        std::make_shared<nb::python_error>(error));
  }
}

/// What the entries of nested lists say about the dtype.
struct Entries {
  std::optional<DType> own;  ///< promoted from those that have one: NumPy's scalars, arrays
  bool has_float = false, has_complex = false;  ///< of Python's own
  bool has_other = false;                       ///< neither a number nor anything with a dtype
  Raised no_length = nullptr;                   ///< what such an object says of its length
  Lookout lookout = {};                         ///< there may be many

  bool are_integers() const {
    const bool has_inexact = own && (is_floating(*own) || is_complex(*own));
    return !has_float && !has_complex && !has_other && !has_inexact;
  }
};

/// The array of what was given, which has integers beyond 64 bits, as floats.
nb::object as_floats(nb::handle array, nb::handle given, bool is_complex) {
  try {
    return numpy("asarray")(array, "dtype"_a = is_complex ? "complex128" : "float64");
  } catch (nb::python_error& error) {
    if (error.matches(PyExc_OverflowError)) {
      refuse<OverflowError>(cat("tensor: ", message_of(error.value())),
                            std::make_shared<nb::python_error>(error));
    }
    if (!error.matches(PyExc_TypeError) && !error.matches(PyExc_ValueError)) throw;
    refuse<DTypeError>(
        cat("tensor: ", is_list(given) ? "an entry of the list" : describe(given),
            " cannot become a tensor; arrays, numbers and lists of them can",
            has_attribute(given, "nnz") ? ", as what its to_dense() or toarray() makes" : ""),
        std::make_shared<nb::python_error>(error));
  }
}

/// NumPy takes an object that raises when it is asked for its length for no sequence: it is asked
/// again for what it raises.
Raised asked_for_length(nb::handle object) {
  const bool is_sequence = PySequence_Check(object.ptr()) != 0;
  return is_sequence && PySequence_Size(object.ptr()) < 0 ? wrong_kind() : nullptr;
}

void look_through(nb::handle object, Entries& found) {
  found.lookout.after(1);
  if (PyFloat_CheckExact(object.ptr())) {  // of long lists nearly all
    found.has_float = true;
  } else if (PyComplex_CheckExact(object.ptr())) {
    found.has_complex = true;
  } else if (PyList_Check(object.ptr()) || PyTuple_Check(object.ptr())) {
    for (nb::handle entry : nb::tuple(object)) look_through(entry, found);
  } else if (PyLong_Check(object.ptr()) == 0) {
    nb::object dtype = attribute_of(object, "dtype");
    const bool has_own = dtype.is_valid() && !dtype.is_none();
    const bool is_array = PyObject_CheckBuffer(object.ptr()) != 0 || has_numpy_elements(object);
    if (!has_own && is_array) {
      dtype = numpy("asarray")(object).attr("dtype");
    }
    if (has_own || is_array) {
      const DType own = convert_argument(dtype, TypeTag<DType>{});
      found.own = found.own ? promote(*found.own, own) : own;
    } else if (PyFloat_Check(object.ptr())) {
      found.has_float = true;
    } else if (PyComplex_Check(object.ptr())) {
      found.has_complex = true;
    } else {
      found.has_other = true;
      if (found.no_length == nullptr) found.no_length = asked_for_length(object);
    }
  }
}

/// Python's floats become float32 and its complex numbers complex64, unless an entry has a floating
/// dtype of its own.
DType natural_dtype(DType parsed_dtype, const Entries& entries) {
  if (entries.own && (is_floating(*entries.own) || is_complex(*entries.own))) {
    return entries.has_complex ? complex_dtype(*entries.own) : *entries.own;
  }
  if (parsed_dtype != DType::kFloat64 && parsed_dtype != DType::kComplex128) return parsed_dtype;
  return parsed_dtype == DType::kFloat64 ? DType::kFloat32 : DType::kComplex64;
}

/// The entries one by one; without a dtype they are integers, and uint64 when int64 lacks one.
Tensor exact(nb::handle object, std::optional<DType> dtype) {
  const nb::object entries = numpy("array")(object, "dtype"_a = "object");
  const nb::list flat(entries.attr("ravel")().attr("tolist")());
  std::vector<Scalar> numbers;
  Lookout lookout;
  for (nb::handle entry : nb::tuple(flat)) {
    numbers.push_back(number_of("tensor", entry));
    lookout.after(1);
  }
  const bool is_large = std::any_of(numbers.begin(), numbers.end(),
                                    [](const Scalar& number) { return number.is_large(); });
  const DType target = dtype.value_or(is_large ? DType::kUInt64 : DType::kInt64);
  const Tensor result = empty(convert_argument(entries.attr("shape"), TypeTag<Shape>{}), target);
  visit_dtype(IntegerTypes{}, target, "tensor", [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* values = result.data<T>();
    for (const Scalar& number : numbers) {
      number.check_fits("tensor", target);
      *values++ = static_cast<T>(number.to_bits64());
    }
  });
  return result;
}

/// Whether float64 may have lost something of integers: it holds a number that several share.
bool may_have_lost(const Tensor& tensor) {
  if (tensor.dtype() != DType::kFloat64) return false;
  const auto* values = tensor.data<double>();  // NumPy has made it, row by row
  return std::any_of(values, values + tensor.size(),
                     [](double value) { return std::abs(value) >= kWholeDoubles; });
}

}  // namespace

Tensor import_numbers(nb::handle object, std::optional<DType> dtype) {
  nb::object array = parsed(object);
  const std::string kind = message_of(array.attr("dtype").attr("kind"));
  const bool is_inexact = kind == "f" || kind == "c";
  Entries entries;
  if (kind == "O" || (is_inexact && !dtype)) look_through(object, entries);
  const bool wants_integers = dtype ? is_integer(*dtype) : entries.are_integers();
  if (entries.no_length != nullptr) {
    refuse<DTypeError>(cat("tensor: ", is_list(object) ? "an entry of the list" : describe(object),
                           " does not tell its length, and cannot become a tensor"),
                       entries.no_length);
  }
  if (kind == "O" && !entries.has_other) {  // integers beyond 64 bits
    if (wants_integers) return exact(object, dtype);
    array = as_floats(array, object, entries.has_complex);
  }
  const Tensor tensor = import_numpy(array);
  if (is_inexact && wants_integers && may_have_lost(tensor)) return exact(object, dtype);
  return cast_exactly("tensor", tensor, dtype.value_or(natural_dtype(tensor.dtype(), entries)));
}

}  // namespace cuop::python
