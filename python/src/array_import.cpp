// Anything array-like as a tensor, and where it goes when it is an argument of a call.
#include <atomic>

#include "cuop/backend/current_device.h"
#include "cuop/core/text.h"
#include "cuop/dist/dist_tensor.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "exchange.h"

namespace cuop::python {

nb::object numpy(const char* function) { return nb::module_::import_("numpy").attr(function); }

namespace {

/// A class of NumPy's, which stays known: to import a module again takes longer than most of a
/// call. Importing lets other threads in, so that a class may be looked up by several of them.
nb::handle class_of_numpy(std::atomic<PyObject*>& known, const char* name) {
  PyObject* found = known.load(std::memory_order_acquire);
  if (found == nullptr) {
    found = numpy(name).release().ptr();
    known.store(found, std::memory_order_release);
  }
  return found;
}

bool is_numpy(nb::handle object) {
  static constinit std::atomic<PyObject*> array = nullptr, number = nullptr;
  return nb::isinstance(object, class_of_numpy(array, "ndarray")) ||
         nb::isinstance(object, class_of_numpy(number, "generic"));
}

/// Calls `visit` for an argument and, when it is a list or a tuple, for its items, until one
/// returns a device.
template <class Visit>
std::optional<Device> first_in(nb::handle argument, const Visit& visit) {
  if (const auto device = visit(argument)) return device;
  const bool is_list = PyList_Check(argument.ptr()) != 0;
  if (!is_list && PyTuple_Check(argument.ptr()) == 0) return std::nullopt;
  for (Py_ssize_t i = 0; i < Py_SIZE(argument.ptr()); ++i) {
    // Held, because looking at it may run Python, which may change the list.
    const nb::object item = nb::borrow(is_list ? PyList_GetItem(argument.ptr(), i)
                                               : PyTuple_GetItem(argument.ptr(), i));
    if (const auto device = visit(item)) return device;
  }
  return std::nullopt;
}

template <class Visit>
std::optional<Device> first_of_call(const Visit& visit) {
  for (PyObject* argument : Call::arguments()) {
    if (const auto device = first_in(argument, visit)) return device;
  }
  return std::nullopt;
}

/// Of a distributed tensor the one of its parts, which asking it for its elements would gather.
std::optional<Device> device_of_tensor(nb::handle object) {
  if (nb::isinstance<dist::DistTensor>(object) && nb::inst_ready(object)) {
    return nb::inst_ptr<dist::DistTensor>(object)->device();
  }
  if (!nb::isinstance<Tensor>(object) || !nb::inst_ready(object)) return std::nullopt;
  return nb::inst_ptr<Tensor>(object)->device();
}

/// Of Python's own numbers and lists, which are looked at most often.
bool has_no_array(nb::handle object) {
  return PyList_CheckExact(object.ptr()) || PyTuple_CheckExact(object.ptr()) || object.is_none() ||
         is_python_number(object);
}

/// The GPU of another library's array. What cannot be taken is complained about when it is
/// converted for its own sake.
std::optional<Device> device_of_gpu_array(nb::handle object) {
  const bool is_text = PyUnicode_Check(object.ptr()) != 0;  // as `mode` is
  if (is_text || has_no_array(object) || is_numpy(object)) return std::nullopt;
  const bool is_array =
      (has_attribute(object, "__dlpack__") && !PyObject_CheckBuffer(object.ptr())) ||
      has_attribute(object, "__cuda_array_interface__");
  if (!is_array) return std::nullopt;
  try {
    const Device device = import_any(object, std::nullopt).device();
    return device.is_cpu() ? std::nullopt : std::optional(device);
  } catch (const Error&) {
    return std::nullopt;
  }
}

Device device_of_call() {
  if (const auto device = first_of_call(device_of_tensor)) return *device;
  if (const auto device = first_of_call(device_of_gpu_array)) return *device;
  return backend::current_device();
}

/// The tensor made of an argument, on the device where it is used: a tensor of cuOP and a GPU array
/// stay where they are; what lies on the host (NumPy arrays, lists, numbers, buffers) goes beside
/// the call's first tensor, be it an operand, an output or an item of a list, then beside its first
/// GPU array of another library, and in a call without either to the current device.
Tensor placed(nb::handle object, const Tensor& tensor) {
  if (nb::isinstance<Tensor>(object) || !tensor.device().is_cpu()) return tensor;
  const Device device = device_of_call();
  if (device.is_cpu()) return tensor;
  const nb::gil_scoped_release released;
  return to_device(tensor, device);
}

}  // namespace

Tensor import_numpy(nb::handle array) {
  if (auto tensor = import_buffer(array)) return *tensor;
  nb::object dtype = array.attr("dtype");
  const std::string kind = message_of(dtype.attr("kind"));
  if (kind.find_first_of("biufc") == std::string::npos) {
    throw DTypeError(cat("tensor: a NumPy array of dtype ", message_of(dtype),
                         " cannot become a tensor; bool, integer, float and complex can"));
  }
  // Byte-swapped, misaligned or of odd strides: one ordinary copy cures all of them.
  nb::object native = numpy("array")(array, "dtype"_a = dtype.attr("newbyteorder")("="),
                                     "order"_a = "C", "copy"_a = true);
  if (auto tensor = import_buffer(native)) return *tensor;
  throw DTypeError(cat("tensor: NumPy dtype ", message_of(dtype), " has no cuop dtype"));
}

/// Of an object with __array__, which need not return an array, or with another way to NumPy.
nb::object numpy_array_of(nb::handle object) {
  try {
    return numpy("asarray")(object);
  } catch (nb::python_error& error) {
    const bool is_read =
        !has_attribute(object, "__array__");  // by NumPy, which calls nothing of it
    if (is_read && (error.matches(PyExc_ValueError) || error.matches(PyExc_TypeError))) {
      refuse<DTypeError>(cat("tensor: the array interface of ", class_name(object),
                             " cannot be read: ", message_of(error.value())),
                         std::make_shared<nb::python_error>(error));
    }
    if (!error.matches(PyExc_ValueError) ||
        message_of(error.value()).find("not producing an array") == std::string::npos) {
      throw;
    }
    throw DTypeError(cat("tensor: the __array__ of ", class_name(object), " makes no array"));
  }
}

Tensor import_any(nb::handle object, std::optional<DType> dtype) {
  if (nb::isinstance<Tensor>(object)) {
    if (nb::inst_ready(object)) return nb::cast<Tensor>(object);
    throw DTypeError("tensor: the Tensor was never made; call cuop.tensor or the like");
  }
  if (PyType_Check(object.ptr())) {  // which has the methods of its objects
    throw DTypeError(cat("tensor: the class ", name_of_class(object),
                         " cannot become a tensor; an object of it may"));
  }
  if (has_no_array(object)) return import_numbers(object, dtype);
  if (is_numpy(object)) return import_numpy(object);
  if (has_attribute(object, "__dlpack__")) return import_dlpack(object);
  if (has_attribute(object, "__cuda_array_interface__")) return import_cuda_array(object);
  if (auto tensor = import_buffer(object)) return *tensor;
  if (has_numpy_elements(object)) return import_numpy(numpy_array_of(object));
  return import_numbers(object, dtype);
}

Tensor convert_argument(nb::handle object, TypeTag<Tensor>) {
  return placed(object, import_any(object, std::nullopt));
}

Unplaced convert_argument(nb::handle object, TypeTag<Unplaced>) {
  return {import_any(object, std::nullopt), nb::isinstance<Tensor>(object)};
}

Tensor import_values(nb::handle object, DType dtype) {
  return placed(object, import_any(object, dtype));
}

Tensor named_values(nb::handle object, DType dtype, const char* argument) {
  return named_call([&] { return Call::place(argument); },
                    [&] { return import_values(object, dtype); });
}

/// import_any of an argument that is called `data`.
Tensor import_data(nb::handle object, std::optional<DType> dtype) {
  return named_call([] { return Call::place("data"); }, [&] { return import_any(object, dtype); });
}

Tensor tensor_from(nb::handle object, std::optional<DType> dtype, std::optional<Device> device) {
  const Tensor source = import_data(object, dtype);
  const bool has_device = nb::isinstance<Tensor>(object) || !source.device().is_cpu();
  const nb::gil_scoped_release released;
  const Tensor converted =
      named_call("tensor: data", [&] { return cast(source, dtype.value_or(source.dtype())); });
  const Device where = device ? *device : has_device ? source.device() : backend::current_device();
  const Tensor there = to_device(converted, where);
  return there.storage() == source.storage() ? clone(there) : there;
}

/// Whether the tensor made of an object has the object's own memory.
bool shares_memory(nb::handle object, const Tensor& made) {
  if (nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object) ||
      PyLong_Check(object.ptr()) || PyFloat_Check(object.ptr()) || PyComplex_Check(object.ptr())) {
    return false;
  }
  if (!is_numpy(object) || made.size() == 0) return true;
  Py_buffer view{};
  if (PyObject_GetBuffer(object.ptr(), &view, PyBUF_STRIDED_RO) != 0) {
    PyErr_Clear();  // an array that the tensor is a copy of
    return false;
  }
  const bool is_same = view.buf == made.data();
  PyBuffer_Release(&view);
  return is_same;
}

Tensor shared_or_placed(nb::handle object, std::optional<DType> dtype, std::optional<Device> device,
                        std::optional<bool> copies) {
  const Tensor source = import_data(object, dtype);
  const bool is_shared = shares_memory(object, source);
  const nb::gil_scoped_release released;
  const bool has_place = is_shared || nb::isinstance<Tensor>(object);
  const Device where = device ? *device : has_place ? source.device() : backend::current_device();
  const Tensor converted =
      named_call("asarray: data", [&] { return cast(source, dtype.value_or(source.dtype())); });
  const Tensor there = to_device(converted, where);
  const bool is_copy = !is_shared || there.storage() != source.storage();
  if (copies == false && is_copy) {
    throw ExecutionError(
        "asarray: copy is False, for which the data must be an array of this "
        "dtype on this device");
  }
  return copies == true && !is_copy ? clone(there) : there;
}

nb::object to_python_number(const Tensor& element) {
  Tensor host = element;
  if (!element.device().is_cpu()) {
    const nb::gil_scoped_release released;  // the GPU may have to finish first
    host = to_device(element, kCpu);
  }
  return visit_dtype(AllTypes{}, host.dtype(), "item", [&](auto tag) -> nb::object {
    using T = typename decltype(tag)::type;
    const T value = *host.data<T>();
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
      return nb::float_(static_cast<double>(static_cast<float>(value)));
    } else if constexpr (std::is_same_v<T, std::complex<float>> ||
                         std::is_same_v<T, std::complex<double>>) {
      return nb::steal(PyComplex_FromDoubles(value.real(), value.imag()));
    } else {
      return nb::cast(value);
    }
  });
}

Device device_or_current(const OptionalDevice& device) {
  return device ? **device : backend::current_device();
}

}  // namespace cuop::python
