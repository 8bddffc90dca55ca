// Streams as other libraries number them, and GPU memory through __cuda_array_interface__ (version
// 3, as Numba documents it).
#include <algorithm>

#include "cuop/backend/current_device.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/text.h"
#include "cuop/memory/current.h"
#include "exchange.h"
#include "exchange_release.h"

namespace cuop::python {

namespace {

constexpr int64_t kLegacyStream = 1;  // null is ambiguous there, so the default stream is 1
constexpr int64_t kInterfaceVersion = 3;

/// NumPy's kind letter and size; bfloat16 has none.
std::string type_text(DType dtype) {
  const char* kind = is_bool(dtype)               ? "b"
                     : is_signed_integer(dtype)   ? "i"
                     : is_unsigned_integer(dtype) ? "u"
                     : is_complex(dtype)          ? "c"
                                                  : "f";
  return cat(itemsize(dtype) == 1 ? "|" : "<", kind, itemsize(dtype));
}

DType dtype_of_text(const std::string& text) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (dtype != DType::kBFloat16 && type_text(dtype) == text) return dtype;
  }
  throw DTypeError(cat("__cuda_array_interface__: typestr '", text, "' has no cuop dtype"));
}

Layout layout_of(nb::handle interface, int64_t bytes) {
  Layout layout = contiguous_layout(convert_argument(interface["shape"], TypeTag<Shape>{}));
  nb::object strides = interface.attr("get")("strides");
  if (strides.is_none()) return layout;
  for (int i = 0; i < layout.ndim(); ++i) {
    const auto stride = nb::cast<int64_t>(strides[nb::int_(i)]);
    if (stride % bytes != 0) {
      throw DTypeError(cat("__cuda_array_interface__: a stride of ", stride,
                           " bytes is no multiple of the element's ", bytes));
    }
    layout.strides[i] = stride / bytes;
  }
  return layout;
}

/// The GPU on which an object of another library says it lies; the current one, or the first, when
/// it does not say.
Device device_of(nb::handle object) {
  const nb::object device = attribute_of(object, "device");
  for (const char* name : {"index", "id"}) {
    const nb::object index = device.is_valid() ? attribute_of(device, name) : nb::object();
    const bool is_index = index.is_valid() && PyLong_Check(index.ptr()) != 0;
    if (is_index) return {DeviceType::kCuda, nb::cast<int>(index)};
  }
  const Device current = backend::current_device();
  return current.is_cpu() ? Device{DeviceType::kCuda, 0} : current;
}

}  // namespace

int64_t stream_number(Stream stream) {
  const auto handle = reinterpret_cast<int64_t>(stream.handle);
  return handle == 0 ? kLegacyStream : handle;
}

Stream stream_of_number(Device device, int64_t number) {
  return {device, reinterpret_cast<void*>(number == kLegacyStream ? 0 : number)};
}

void order_for_consumer(const char* who, const Tensor& tensor, nb::handle stream) {
  const Device device = tensor.device();
  if (device.is_cpu()) {
    if (stream.is_none()) return;
    throw ExecutionError(cat(who, ": a CPU tensor has no stream; pass stream=None"));
  }
  Raised why;
  const std::optional<int64_t> given =
      stream.is_none() ? std::optional(kLegacyStream) : integer_in(stream, why);
  if (!given) {
    refuse<DTypeError>(cat(who, ": stream: needed is an integer or None, given ", describe(stream)),
                       why);
  }
  const int64_t number = *given;
  if (number == -1) return;  // the consumer orders the two itself
  if (number <= 0) {
    throw ExecutionError(cat(who, ": stream ", number,
                             " is ambiguous; pass 1 for the default stream, 2 for the thread's, "
                             "-1 for none, or a handle"));
  }
  tensor.data();  // deferred work belongs to what the consumer waits for
  const Stream consumer = stream_of_number(device, number);
  backend::runtime(device).order(consumer, current_stream(device));
  // The consumer may give the tensor back while its work on it is still to be done.
  memory::record_stream(*tensor.storage(), consumer);
  note_use(tensor, consumer);
}

nb::object export_cuda_array(const Tensor& tensor) {
  const char* problem = nullptr;
  if (tensor.device().is_cpu()) {
    problem = "__cuda_array_interface__: the tensor is on the CPU; use to('cuda')";
  } else if (tensor.dtype() == DType::kBFloat16) {
    problem = "__cuda_array_interface__: it has no bfloat16; use DLPack or cast to float32";
  }
  if (problem != nullptr) throw nb::attribute_error(problem);  // so that hasattr says False
  const auto address = reinterpret_cast<uintptr_t>(tensor.size() > 0 ? tensor.data() : nullptr);
  nb::object strides = nb::none();
  if (!tensor.is_contiguous()) {
    Strides bytes = tensor.strides();
    for (int i = 0; i < bytes.ndim(); ++i) bytes[i] *= itemsize(tensor.dtype());
    strides = to_tuple(bytes);
  }
  return record_of("shape", to_tuple(tensor.shape()), "typestr", type_text(tensor.dtype()), "data",
                   nb::make_tuple(address, tensor.storage()->is_read_only()), "version",
                   kInterfaceVersion, "strides", strides, "stream",
                   stream_number(current_stream(tensor.device())));
}

Tensor import_cuda_array(nb::handle object) {
  nb::object interface = object.attr("__cuda_array_interface__");
  if (!nb::object(interface.attr("get")("mask")).is_none()) {
    throw DTypeError("__cuda_array_interface__: masked arrays cannot become tensors");
  }
  const DType dtype = dtype_of_text(message_of(interface["typestr"]));
  const Layout layout = layout_of(interface, itemsize(dtype));
  nb::object data = interface["data"];
  const auto address = nb::cast<uintptr_t>(data[nb::int_(0)]);
  const bool is_read_only = nb::cast<bool>(data[nb::int_(1)]);
  const Device device = device_of(object);
  backend::Runtime& runtime = backend::runtime(device);
  nb::object stream = interface.attr("get")("stream");
  if (!stream.is_none()) {  // else the producer has finished
    const Stream producer = stream_of_number(device, nb::cast<int64_t>(stream));
    runtime.order(current_stream(device), producer);
  }
  std::shared_ptr<void> owner(nb::borrow(object).release().ptr(), [](void* held) {
    if (Py_IsInitialized() == 0) return;
    const nb::gil_scoped_acquire gil;
    Py_DECREF(static_cast<PyObject*>(held));
  });
  return borrow(reinterpret_cast<void*>(address), layout, dtype, device, std::move(owner),
                is_read_only);
}

}  // namespace cuop::python
