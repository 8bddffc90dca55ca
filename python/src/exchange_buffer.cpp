#include <cstring>
#include <string_view>

#include "cuop/core/text.h"
#include "cuop/ops/create/create.h"
#include "exchange.h"

namespace cuop::python {

namespace {

/// struct-module format characters; bfloat16 has none.
struct Format {
  DType dtype;
  const char* text;
};
constexpr Format kFormats[] = {
    {DType::kBool, "?"},        {DType::kInt8, "b"},    {DType::kInt16, "h"},
    {DType::kInt32, "i"},       {DType::kInt64, "q"},   {DType::kUInt8, "B"},
    {DType::kUInt16, "H"},      {DType::kUInt32, "I"},  {DType::kUInt64, "Q"},
    {DType::kFloat16, "e"},     {DType::kFloat32, "f"}, {DType::kFloat64, "d"},
    {DType::kInt64, "l"},       {DType::kUInt64, "L"},  {DType::kComplex64, "Zf"},
    {DType::kComplex128, "Zd"},
};

std::optional<DType> parse_format(std::string_view format, int64_t bytes) {
  if (!format.empty() && (format[0] == '@' || format[0] == '=' || format[0] == '<')) {
    format.remove_prefix(1);
  }
  for (const Format& candidate : kFormats) {
    if (format == candidate.text && itemsize(candidate.dtype) == bytes) return candidate.dtype;
  }
  return std::nullopt;
}

const char* format_of(DType dtype) {
  for (const Format& candidate : kFormats) {
    if (candidate.dtype == dtype) return candidate.text;
  }
  return nullptr;
}

struct BufferHolder {
  Py_buffer view{};
  ~BufferHolder() {
    if (Py_IsInitialized() == 0) return;
    const nb::gil_scoped_acquire gil;
    PyBuffer_Release(&view);
  }
};

/// What a Py_buffer of ours points at until it is released.
struct Exported {
  Tensor tensor;
  Py_ssize_t shape[kMaxDims];
  Py_ssize_t strides[kMaxDims];
};

int get_buffer(PyObject* self, Py_buffer* view, int flags) noexcept {
  if (!nb::inst_ready(nb::handle(self))) {  // Tensor.__new__(Tensor)
    view->obj = nullptr;
    PyErr_SetString(PyExc_BufferError, "the tensor was never made; call cuop.tensor or the like");
    return -1;
  }
  const Tensor& tensor = *nb::inst_ptr<Tensor>(nb::handle(self));
  const char* problem = nullptr;
  const char* format = format_of(tensor.dtype());
  if (!tensor.device().is_cpu()) {
    problem = "the buffer protocol reaches CPU tensors only; use to('cpu')";
  } else if (format == nullptr) {
    problem = "the buffer protocol has no bfloat16; cast to float32";
  } else if (tensor.storage()->is_read_only() && (flags & PyBUF_WRITABLE) == PyBUF_WRITABLE) {
    problem = "the tensor is read-only";
  } else if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES && !tensor.is_contiguous()) {
    problem = "the tensor is not contiguous and the consumer asks for contiguous memory";
  }
  if (problem != nullptr) {
    view->obj = nullptr;
    PyErr_SetString(PyExc_BufferError, problem);
    return -1;
  }
  try {
    auto* exported = new Exported{tensor, {}, {}};
    const int64_t bytes = itemsize(tensor.dtype());
    for (int i = 0; i < tensor.ndim(); ++i) {
      exported->shape[i] = tensor.shape(i);
      exported->strides[i] = tensor.strides()[i] * bytes;
    }
    view->buf = tensor.data();
    view->len = tensor.nbytes();
    view->itemsize = bytes;
    view->readonly = tensor.storage()->is_read_only() ? 1 : 0;
    view->ndim = tensor.ndim();
    view->format = const_cast<char*>(format);
    view->shape = exported->shape;
    view->strides = exported->strides;
    view->suboffsets = nullptr;
    view->internal = exported;
    view->obj = self;
    Py_INCREF(self);
    return 0;
  } catch (const std::exception& error) {
    view->obj = nullptr;
    PyErr_SetString(PyExc_BufferError, error.what());
    return -1;
  }
}

void release_buffer(PyObject*, Py_buffer* view) noexcept {
  delete static_cast<Exported*>(view->internal);
}

}  // namespace

PyType_Slot* buffer_slots() {
  static PyType_Slot slots[] = {
      {Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
      {Py_bf_releasebuffer, reinterpret_cast<void*>(release_buffer)},
      {0, nullptr},
  };
  return slots;
}

std::optional<Tensor> import_buffer(nb::handle object) {
  if (PyObject_CheckBuffer(object.ptr()) == 0) return std::nullopt;
  auto holder = std::make_shared<BufferHolder>();
  Py_buffer& view = holder->view;
  if (PyObject_GetBuffer(object.ptr(), &view, PyBUF_RECORDS_RO) != 0) {
    const Raised raised = take_raised();
    for (PyObject* refusal : {PyExc_BufferError, PyExc_ValueError, PyExc_TypeError}) {
      // A format the protocol cannot express (NumPy's datetime64, say).
      if (raised->matches(refusal)) return std::nullopt;
    }
    throw nb::python_error(*raised);
  }
  const auto dtype = parse_format(view.format != nullptr ? view.format : "B", view.itemsize);
  if (!dtype) return std::nullopt;
  Layout layout{{}, {}, 0};
  const auto ndim = static_cast<size_t>(view.ndim);
  if (view.strides == nullptr) {  // as ctypes tells that its arrays are contiguous
    layout = contiguous_layout(
        Shape(std::vector<int64_t>(view.shape, view.shape + (view.shape != nullptr ? ndim : 0))));
  }
  for (size_t i = 0; view.strides != nullptr && i < ndim; ++i) {
    if (view.strides[i] % view.itemsize != 0) return std::nullopt;
    layout.shape.push_back(view.shape[i]);
    layout.strides.push_back(view.strides[i] / view.itemsize);
  }
  if (reinterpret_cast<uintptr_t>(view.buf) % static_cast<uintptr_t>(view.itemsize) != 0) {
    return std::nullopt;  // misaligned: NumPy makes an aligned copy
  }
  void* data = view.buf;
  const bool is_read_only = view.readonly != 0;
  return from_memory(data, layout, *dtype, kCpu, std::move(holder), is_read_only);
}

}  // namespace cuop::python
