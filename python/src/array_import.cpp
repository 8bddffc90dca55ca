// Anything array-like as a tensor.
#include "cuop/backend/current_device.h"
#include "cuop/core/text.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "exchange.h"
#include "placement.h"

namespace cuop::python {

namespace {

nb::object numpy(const char* function) { return nb::module_::import_("numpy").attr(function); }

bool is_numpy(nb::handle object) {
  return nb::isinstance(object, numpy("ndarray")) || nb::isinstance(object, numpy("generic"));
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

/// What an object's __array__ returns, which need not be an array.
nb::object array_of(nb::handle object) {
  try {
    return numpy("asarray")(object);
  } catch (nb::python_error& error) {
    if (message_of(error.value()).find("not producing an array") == std::string::npos) {
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
    throw DTypeError(cat("tensor: the class ", message_of(object.attr("__name__")),
                         " cannot become a tensor; an object of it may"));
  }
  if (is_numpy(object)) return import_numpy(object);
  if (nb::hasattr(object, "__dlpack__")) return import_dlpack(object);
  if (nb::hasattr(object, "__cuda_array_interface__")) return import_cuda_array(object);
  if (auto tensor = import_buffer(object)) return *tensor;
  if (nb::hasattr(object, "__array__")) return import_numpy(array_of(object));
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

Tensor tensor_from(nb::handle object, std::optional<DType> dtype, std::optional<Device> device) {
  const Tensor source = import_any(object, dtype);
  const bool has_device = nb::isinstance<Tensor>(object) || !source.device().is_cpu();
  const nb::gil_scoped_release released;
  const Tensor converted = cast(source, dtype.value_or(source.dtype()));
  const Device where = device ? *device : has_device ? source.device() : backend::current_device();
  const Tensor there = to_device(converted, where);
  return there.storage() == source.storage() ? clone(there) : there;
}

Tensor shared_or_placed(nb::handle object, std::optional<Device> device) {
  const Tensor source = import_any(object, std::nullopt);
  const bool has_memory = !nb::isinstance<nb::list>(object) && !nb::isinstance<nb::tuple>(object) &&
                          !PyLong_Check(object.ptr()) && !PyFloat_Check(object.ptr()) &&
                          !PyComplex_Check(object.ptr());
  const nb::gil_scoped_release released;
  const Device where = device ? *device : has_memory ? source.device() : backend::current_device();
  return to_device(source, where);
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

}  // namespace cuop::python
