#include "cuop/backend/runtime.h"
#include "cuop/core/text.h"
#include "dlpack.h"
#include "exchange.h"
#include "exchange_release.h"

namespace cuop::python {

using namespace dlpack;

namespace {

constexpr const char* kName = "dltensor";
constexpr const char* kVersionedName = "dltensor_versioned";

DLDataType to_dl(DType dtype) {
  const auto bits = static_cast<uint8_t>(8 * itemsize(dtype));
  if (is_bool(dtype)) return {kDLBool, bits, 1};
  if (is_signed_integer(dtype)) return {kDLInt, bits, 1};
  if (is_unsigned_integer(dtype)) return {kDLUInt, bits, 1};
  if (is_complex(dtype)) return {kDLComplex, bits, 1};
  return {dtype == DType::kBFloat16 ? kDLBfloat : kDLFloat, bits, 1};
}

DType from_dl(DLDataType given) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const DLDataType candidate = to_dl(static_cast<DType>(i));
    if (candidate.code == given.code && candidate.bits == given.bits && given.lanes == 1) {
      return static_cast<DType>(i);
    }
  }
  throw DTypeError(cat("from_dlpack: type code ", int{given.code}, " with ", int{given.bits},
                       " bits and ", given.lanes, " lanes has no cuop dtype"));
}

/// What an exported capsule keeps alive: the tensor, and its shape and strides as plain arrays.
template <class Managed>
struct ExportedManaged {
  Managed managed{};
  Tensor tensor;
  std::vector<int64_t> shape, strides;
};

template <class Managed>
Managed* make_exported(const Tensor& tensor) {
  auto* exported = new ExportedManaged<Managed>;
  exported->tensor = tensor;
  exported->shape = tensor.shape().to_vector();
  exported->strides = tensor.strides().to_vector();
  exported->managed.manager_ctx = exported;
  exported->managed.deleter = [](Managed* self) {
    delete static_cast<ExportedManaged<Managed>*>(self->manager_ctx);
  };
  const auto [device_type, device_index] = dlpack_device(tensor.device());
  exported->managed.dl_tensor = {tensor.data(),
                                 {device_type, device_index},
                                 tensor.ndim(),
                                 to_dl(tensor.dtype()),
                                 exported->shape.data(),
                                 exported->strides.data(),
                                 0};
  return &exported->managed;
}

template <class Managed>
void delete_unconsumed(PyObject* capsule, const char* name) {
  if (PyCapsule_IsValid(capsule, name) == 0) return;  // the consumer has renamed and owns it
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  managed->deleter(managed);
}

template <class Managed>
std::shared_ptr<void> owner_of(Managed* managed) {
  return std::shared_ptr<void>(managed, [](void* pointer) {
    auto* held = static_cast<Managed*>(pointer);
    if (held->deleter == nullptr || Py_IsInitialized() == 0) return;
    const nb::gil_scoped_acquire gil;  // the producer may free Python objects
    held->deleter(held);
  });
}

/// Page-locked host memory is host memory to us.
Device device_of(DLDevice given) {
  if (given.device_type == kDLCPU || given.device_type == kDLCUDAHost) return kCpu;
  if (given.device_type == kDLCUDA || given.device_type == kDLCUDAManaged) {
    return {DeviceType::kCuda, given.device_id};
  }
  throw DeviceError(cat("from_dlpack: DLPack device type ", given.device_type,
                        " is not available; taken are CPU memory (type ", kDLCPU,
                        ") and CUDA memory (type ", kDLCUDA, ")"));
}

Tensor wrap(const DLTensor& dl, std::shared_ptr<void> owner, bool is_read_only) {
  const Device device = device_of(dl.device);
  backend::runtime(device);  // an absent device is said here, with the reason
  Layout layout = contiguous_layout(Shape(std::span(dl.shape, static_cast<size_t>(dl.ndim))));
  for (int i = 0; dl.strides != nullptr && i < dl.ndim; ++i) layout.strides[i] = dl.strides[i];
  return borrow(static_cast<std::byte*>(dl.data) + dl.byte_offset, layout, from_dl(dl.dtype),
                device, std::move(owner), is_read_only);
}

/// The capsule of a producer, whose work the current stream waits for.
nb::object capsule_of(nb::handle producer) {
  nb::dict arguments;
  if (has_attribute(producer, "__dlpack_device__")) {
    const auto [type, index] =
        nb::cast<std::pair<int, int>>(nb::tuple(producer.attr("__dlpack_device__")()));
    const Device device = device_of({type, index});
    if (!device.is_cpu()) arguments["stream"] = stream_number(current_stream(device));
  }
  try {
    return producer.attr("__dlpack__")("max_version"_a = nb::make_tuple(1, 0), **arguments);
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_TypeError)) throw;
    return producer.attr("__dlpack__")(**arguments);  // a producer from before DLPack 1.0
  }
}

}  // namespace

std::pair<int, int> dlpack_device(Device device) {
  return {device.is_cpu() ? kDLCPU : kDLCUDA, device.index};
}

nb::object export_dlpack(const Tensor& tensor, bool is_versioned, bool is_copied) {
  const bool is_read_only = tensor.storage()->is_read_only();
  if (!is_versioned) {
    if (is_read_only) {
      throw ExecutionError(
          "__dlpack__: the tensor is read-only, which only DLPack 1.0 and later can say; pass "
          "max_version=(1, 0) or a clone");
    }
    return nb::steal(PyCapsule_New(
        make_exported<DLManagedTensor>(tensor), kName,
        [](PyObject* capsule) { delete_unconsumed<DLManagedTensor>(capsule, kName); }));
  }
  auto* managed = make_exported<DLManagedTensorVersioned>(tensor);
  managed->version_major = 1;
  managed->version_minor = 0;
  managed->flags = (is_read_only ? kReadOnly : 0) | (is_copied ? kIsCopied : 0);
  return nb::steal(PyCapsule_New(managed, kVersionedName, [](PyObject* capsule) {
    delete_unconsumed<DLManagedTensorVersioned>(capsule, kVersionedName);
  }));
}

Tensor import_dlpack(nb::handle object) {
  if (PyType_Check(object.ptr())) {  // which has the methods of its objects
    throw DTypeError(cat("from_dlpack: the class ", name_of_class(object),
                         " is no producer; an object of it may be"));
  }
  nb::object capsule;
  if (PyCapsule_CheckExact(object.ptr()) != 0) {
    capsule = nb::borrow(object);
  } else if (has_attribute(object, "__dlpack__")) {
    capsule = capsule_of(object);
  } else if (has_attribute(object, "__cuda_array_interface__")) {
    return import_cuda_array(object);
  } else {
    throw DTypeError("from_dlpack: the object has neither __dlpack__ nor __cuda_array_interface__");
  }
  if (PyCapsule_IsValid(capsule.ptr(), kVersionedName) != 0) {
    auto* managed =
        static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule.ptr(), kVersionedName));
    if (managed->version_major != 1) {
      throw ExecutionError(
          cat("from_dlpack: DLPack version ", managed->version_major, " is not known, 1 is"));
    }
    PyCapsule_SetName(capsule.ptr(), "used_dltensor_versioned");
    return wrap(managed->dl_tensor, owner_of(managed), (managed->flags & kReadOnly) != 0);
  }
  if (PyCapsule_IsValid(capsule.ptr(), kName) != 0) {
    auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), kName));
    PyCapsule_SetName(capsule.ptr(), "used_dltensor");
    return wrap(managed->dl_tensor, owner_of(managed), false);
  }
  throw ExecutionError("from_dlpack: the capsule was used before or is not a DLPack capsule");
}

}  // namespace cuop::python
