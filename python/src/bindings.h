// What every binding file needs: arguments that are converted leniently and complained about in our
// own words, results, and the guard that releases the GIL.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "call.h"
#include "casters.h"
#include "cuop/core/linalg.h"
#include "cuop/core/scalar.h"
#include "cuop/core/tensor.h"
#include "cuop/core/window_offset.h"
#include "cuop/ops/elementwise/operand.h"
#include "raised.h"

namespace nb = nanobind;

namespace cuop::python {

using namespace nb::literals;

/// Makes the result of a call, or the first of several results, the very object that was given as
/// an argument: the last one, unless that is None, or the first.
template <bool is_last>
struct ResultIsArgument {
  static void precall(PyObject**, size_t, nb::detail::cleanup_list*) {}
  template <size_t count>
  static void postcall(PyObject** arguments, std::integral_constant<size_t, count>,
                       PyObject*& result) {
    const nb::handle given(arguments[is_last ? count - 1 : 0]);
    if (result == nullptr || given.is_none()) return;
    nb::object made = nb::steal(result);
    if (nb::isinstance<nb::tuple>(made)) {
      nb::list results(made);
      results[0] = given;
      result = nb::tuple(results).release().ptr();
    } else {
      result = given.inc_ref().ptr();
    }
  }
};
using ReturnsOut = nb::call_policy<ResultIsArgument<true>>;
using ReturnsSelf = nb::call_policy<ResultIsArgument<false>>;

/// None (every axis), one axis or several.
struct Axes {
  std::vector<int64_t> values;  ///< empty means every axis
};

/// An array that is taken where it lies, as a view of its memory (Tensor arguments on the host
/// become tensors beside the other operands).
struct Unplaced {
  Tensor tensor;
  bool is_tensor;  ///< a tensor of cuOP, which stays on its device in every call
};

/// A number with the dtype that it has of its own: NumPy's scalars and tensors of no dimension have
/// one, Python's numbers none.
struct TypedScalar {
  Scalar value = false;
  std::optional<DType> dtype = {};
};

// Conversions; each throws the typed error that the user should see. What becomes a tensor is a
// Tensor, an array of NumPy or DLPack, a buffer, a list or a number; placed (array_import.cpp)
// says on which device.
Tensor convert_argument(nb::handle object, TypeTag<Tensor>);
Unplaced convert_argument(nb::handle object, TypeTag<Unplaced>);
DType convert_argument(nb::handle object, TypeTag<DType>);    ///< name, cuop or NumPy dtype, type
Device convert_argument(nb::handle object, TypeTag<Device>);  ///< "cpu", "cuda:0" or a Device
Shape convert_argument(nb::handle object, TypeTag<Shape>);    ///< an int or a sequence of ints
Axes convert_argument(nb::handle object, TypeTag<Axes>);
WindowOffset convert_argument(nb::handle object, TypeTag<WindowOffset>);
Scalar convert_argument(nb::handle object, TypeTag<Scalar>);  ///< bool, int, float, complex
TypedScalar convert_argument(nb::handle object, TypeTag<TypedScalar>);
/// The same for a number, named in messages by `who`.
Scalar number_of(const char* who, nb::handle object);
/// The shape of a method that takes f(2, 3) as well as f((2, 3)).
Shape shape_of(const nb::args& sizes);
/// ShapeError, which begins with the place ("eye: n"), unless so many elements fit the machine's
/// addresses.
void check_count(int64_t count, DType dtype, const char* place);
/// True or False for NumPy's bool, any other object itself.
nb::handle plain_bool(nb::handle object) noexcept;
/// Whether the object gives its elements as NumPy asks for them.
bool has_numpy_elements(nb::handle object);
/// Whether an operand is a number beside the tensors, which follows their dtype: bool and Python's.
bool is_python_number(nb::handle object);
// A name such as 'lower', a member of the enum, or an integer where it has one meaning (not Uplo).
Uplo convert_argument(nb::handle object, TypeTag<Uplo>);
Side convert_argument(nb::handle object, TypeTag<Side>);
Trans convert_argument(nb::handle object, TypeTag<Trans>);
Diag convert_argument(nb::handle object, TypeTag<Diag>);

/// What an argument of type T is converted into and read as.
template <class T>
class ArgValue {
 public:
  void convert(nb::handle object) { value_ = convert_argument(object, TypeTag<T>{}); }
  const T& get() const { return value_; }

 private:
  T value_{};
};

/// A tensor is read where the Python object has it, which the call keeps alive; only what had to be
/// made from something else is kept here.
template <>
class ArgValue<Tensor> {
 public:
  void convert(nb::handle object) {
    const bool is_tensor = nb::isinstance<Tensor>(object) && nb::inst_ready(object);
    if (!is_tensor) made_ = std::make_shared<Tensor>(convert_argument(object, TypeTag<Tensor>{}));
    value_ = is_tensor ? nb::inst_ptr<Tensor>(object) : made_.get();
  }
  const Tensor& get() const { return *value_; }

 private:
  const Tensor* value_ = nullptr;
  std::shared_ptr<const Tensor> made_;
};

template <>
class ArgValue<Operand> {
 public:
  void convert(nb::handle object) {
    if (is_python_number(object)) {
      value_ = convert_argument(object, TypeTag<Scalar>{});
    } else {
      tensor_.convert(object);
      value_ = tensor_.get();
    }
  }
  const Operand& get() const { return value_; }

 private:
  ArgValue<Tensor> tensor_;
  Operand value_ = false;
};

/// What stubs, and the words of errors, know an argument of type T by.
template <size_t size>
struct StubText {
  consteval StubText(const char (&given)[size]) { std::copy_n(given, size, text); }
  char text[size];
};
template <StubText name>
struct StubName {
  static constexpr auto kStub = nb::detail::const_name(name.text);
};
template <class T>
struct ArgStub : StubName<"ArrayLike"> {};  // Tensor, Unplaced, Operand
template <>
struct ArgStub<DType> : StubName<"DTypeLike"> {};
template <>
struct ArgStub<Device> : StubName<"DeviceLike"> {};
template <>
struct ArgStub<Shape> : StubName<"ShapeLike"> {};
template <>
struct ArgStub<Axes> : StubName<"AxesLike"> {};
template <>
struct ArgStub<WindowOffset> : StubName<"OffsetLike"> {};
template <>
struct ArgStub<Scalar> : StubName<"Number"> {};
template <>
struct ArgStub<TypedScalar> : StubName<"Number"> {};
template <>
struct ArgStub<Uplo> : StubName<"UploLike"> {};
template <>
struct ArgStub<Side> : StubName<"SideLike"> {};
template <>
struct ArgStub<Trans> : StubName<"TransLike"> {};
template <>
struct ArgStub<Diag> : StubName<"DiagLike"> {};

/// An argument of any kind above. nanobind takes whatever object was given; it is converted when
/// the call is known, whose name the error bears.
template <class T>
class Arg {
 public:
  Arg() = default;
  explicit Arg(nb::handle object) : object_(object) {}

  void convert() { value_.convert(object_); }
  const T& operator*() const { return value_.get(); }
  const T* operator->() const { return &**this; }
  operator const T&() const { return **this; }

 private:
  nb::handle object_;
  ArgValue<T> value_;
};

/// convert_argument for functions that take a plain object; its error names the call and the
/// argument.
template <class T>
T named_argument(nb::handle object, const char* argument) {
  return named_call([&] { return Call::place(argument); },
                    [&] { return convert_argument(object, TypeTag<T>{}); });
}

/// The tensor of an optional argument, or null: the form in which operators take `out` and the
/// like.
inline const Tensor* pointer(const std::optional<Tensor>& tensor) {
  return tensor ? &*tensor : nullptr;
}
template <class T>
T value_or(const std::optional<Arg<T>>& argument, T otherwise) {
  return argument ? **argument : otherwise;
}
template <class T>
std::optional<T> converted(const std::optional<Arg<T>>& argument) {
  return argument ? std::optional<T>(**argument) : std::nullopt;
}
using OptionalDevice = std::optional<Arg<Device>>;
Device device_or_current(const OptionalDevice& device);

/// work(), for which the GIL is released.
template <class Work>
auto without_gil(Work&& work) {
  const nb::gil_scoped_release released;
  return work();
}

/// The dtype as the Python object that users see.
struct PyDType {
  DType value;
};
struct PyDevice {
  Device value;
};

/// Python's type of a shape: tuple[int, ...].
using IntTuple = nb::typed<nb::tuple, int64_t, nb::ellipsis>;
IntTuple to_tuple(const Dims& dims);
/// A new tensor from anything array-like; numbers and lists become float32, int64, bool or
/// complex64. Without a device tensors and GPU arrays stay on theirs, all else goes to the current
/// one.
Tensor tensor_from(nb::handle object, std::optional<DType> dtype, std::optional<Device> device);
/// The data as a tensor that shares its memory where it has any, else on the current device; of
/// `dtype` and on `device` when they are given. With `copies` it is a copy, with false
/// ExecutionError where it would be.
Tensor shared_or_placed(nb::handle object, std::optional<DType> dtype, std::optional<Device> device,
                        std::optional<bool> copies);
/// One element as a Python number.
nb::object to_python_number(const Tensor& element);

/// Values, or texts, by name.
using TextRecord = nb::typed<nb::dict, nb::str, nb::str>;
using Record = nb::typed<nb::dict, nb::str, nb::any>;
inline void add_items(nb::dict&) {}
template <class Value, class... Rest>
void add_items(nb::dict& record, const char* name, const Value& value, const Rest&... rest) {
  record[name] = value;
  add_items(record, rest...);
}
/// record_of("free", 3, "total", 8) is {"free": 3, "total": 8}.
template <class... Items>
Record record_of(const Items&... items) {
  Record record;
  add_items(record, items...);
  return record;
}
/// The list of record_of_row(row) for the rows of a table.
template <class Row = Record, class Rows, class RecordOf>
nb::typed<nb::list, Row> records_of(const Rows& rows, const RecordOf& record_of_row) {
  nb::typed<nb::list, Row> list;
  for (const auto& row : rows) list.append(record_of_row(row));
  return list;
}

}  // namespace cuop::python

namespace nanobind::detail {

template <class T>
struct type_caster<cuop::python::Arg<T>> {
  NB_TYPE_CASTER(cuop::python::Arg<T>, cuop::python::ArgStub<T>::kStub)

  bool from_python(handle source, auto, cleanup_list*) noexcept {
    value = cuop::python::Arg<T>(source);
    return true;
  }
};

}  // namespace nanobind::detail
