// What other libraries call on a tensor to get at its elements.
#include <algorithm>

#include "cuop/core/text.h"
#include "cuop/ops/copy/copy.h"
#include "exchange.h"

namespace cuop::python {

namespace {

/// The `copy` of a protocol: True, False, or None for a copy where it is needed.
std::optional<bool> wants_copy(const char* who, nb::handle copy) {
  if (copy.is_none()) return std::nullopt;
  const nb::handle flag = plain_bool(copy);
  if (nb::isinstance<nb::bool_>(flag)) return nb::cast<bool>(flag);
  throw DTypeError(cat(who, ": copy: needed is True, False or None, given ", describe(copy)));
}

/// The two integers of a device or a version.
std::pair<int, int> pair_of(const char* argument, nb::handle object) {
  Raised why;
  const nb::object items = items_of(object);
  if (!items.is_valid() && PyErr_Occurred() != nullptr) why = wrong_kind();
  std::vector<int> numbers;
  for (size_t i = 0; items.is_valid() && i < nb::len(items); ++i) {
    const std::optional<int64_t> number = integer_in(items[i], why);
    if (number && std::in_range<int>(*number)) numbers.push_back(static_cast<int>(*number));
  }
  if (numbers.size() != 2 || nb::len(items) != 2) {
    refuse<DTypeError>(
        cat("__dlpack__: ", argument, ": needed are two integers, given ", describe(object)), why);
  }
  return {numbers[0], numbers[1]};
}

/// The tensor with the strides of row-major order where a stride is never used, because the axis
/// has one element or the tensor none: consumers look at all of them.
Tensor with_plain_strides(const Tensor& tensor) {
  Layout layout = tensor.layout();
  const Layout plain = contiguous_layout(layout.shape);
  for (int i = 0; i < layout.ndim(); ++i) {
    if (layout.shape[i] == 1 || tensor.size() == 0) layout.strides[i] = plain.strides[i];
  }
  return tensor.with_layout(layout);
}

/// Whether an axis is walked backwards, which DLPack can say but PyTorch does not survive.
bool has_negative_strides(const Tensor& tensor) {
  const Strides& strides = tensor.strides();
  return std::any_of(strides.begin(), strides.end(), [](int64_t stride) { return stride < 0; });
}

/// What NumPy makes of the `dtype` that __array__ was given.
nb::object numpy_dtype(const nb::object& numpy, nb::handle dtype) {
  try {
    return numpy.attr("dtype")(dtype);
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_TypeError) && !error.matches(PyExc_ValueError)) throw;
    nb::raise_from(error, nb::module_::import_("cuop.errors").attr("DTypeError").ptr(),
                   "__array__: dtype: NumPy has none for %s", describe(dtype).c_str());
  }
}

/// On the device that the consumer asks for: the tensor's own, or the host's memory.
Tensor for_device(const Tensor& tensor, nb::handle dl_device) {
  if (dl_device.is_none()) return tensor;
  const auto wanted = pair_of("dl_device", dl_device);
  if (wanted == dlpack_device(tensor.device())) return tensor;
  if (wanted != dlpack_device(kCpu)) {
    throw DeviceError(cat("__dlpack__: the tensor is on ", tensor.device(),
                          "; move it with to() before exporting"));
  }
  const nb::gil_scoped_release released;
  return to_device(tensor, kCpu);
}

}  // namespace

Tensor for_numpy(const Tensor& tensor) {
  return tensor.dtype() == DType::kBFloat16 ? cast(tensor, DType::kFloat32) : tensor;
}

nb::object to_numpy(const Tensor& tensor) {
  Tensor copy;
  {
    const nb::gil_scoped_release released;
    copy = to_device(tensor, kCpu);
    if (copy.storage() == tensor.storage()) copy = clone(tensor);
  }
  if (copy.dtype() == DType::kBFloat16) {
    throw DTypeError("to_numpy: NumPy has no bfloat16; use .to('float32').to_numpy()");
  }
  return numpy("asarray")(nb::cast(copy));
}

nb::object array_of(const Tensor& self, nb::handle dtype, nb::handle copy) {
  const std::optional<bool> asked = wants_copy("__array__", copy);
  const bool can_share = self.device().is_cpu() && self.dtype() != DType::kBFloat16;
  if (asked == false && !can_share) {
    throw nb::value_error("__array__: copy is False, for which the tensor must be on the CPU");
  }
  const nb::object numpy = nb::module_::import_("numpy");
  const nb::object wanted = dtype.is_none() ? nb::none() : numpy_dtype(numpy, dtype);
  nb::object array = can_share && asked != true
                         ? numpy.attr("asarray")(
                               nb::module_::import_("builtins").attr("memoryview")(nb::cast(self)))
                         : to_numpy(dtype.is_none() ? self : for_numpy(self));
  if (dtype.is_none()) return array;
  const nb::object again = asked == false ? nb::object(nb::bool_(false)) : nb::none();
  return numpy.attr("asarray")(array, "dtype"_a = wanted, "copy"_a = again);
}

nb::object dlpack_of(const Tensor& self, nb::handle stream, nb::handle max_version,
                     nb::handle dl_device, nb::handle copy) {
  const bool is_versioned =
      !max_version.is_none() && pair_of("max_version", max_version).first >= 1;
  const std::optional<bool> asked = wants_copy("__dlpack__", copy);
  Tensor exported = with_plain_strides(for_device(self, dl_device));
  const bool is_moved = exported.device() != self.device();
  const bool is_reversed = has_negative_strides(exported);
  if (asked == false && (is_moved || is_reversed)) {
    throw nb::buffer_error(
        is_moved ? "__dlpack__: the tensor is on a GPU, needed is the host's memory, and copy is "
                   "False"
                 : "__dlpack__: the tensor has negative strides, which consumers do not take, and "
                   "copy is False; export a clone");
  }
  const bool must_copy = !is_moved && (is_reversed || asked == true);
  if (must_copy) {
    const nb::gil_scoped_release released;
    exported = clone(self);
  }
  // What was moved to the host is there, whatever the consumer's stream.
  if (!is_moved) order_for_consumer("__dlpack__", exported, stream);
  return export_dlpack(exported, is_versioned, is_moved || must_copy);
}

}  // namespace cuop::python
