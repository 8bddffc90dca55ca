#include "placement.h"

#include "cuop/backend/current_device.h"
#include "cuop/dist/dist_tensor.h"
#include "cuop/ops/copy/copy.h"
#include "exchange.h"

namespace cuop::python {

namespace {

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

/// The GPU of another library's array. What cannot be taken is complained about when it is
/// converted for its own sake.
std::optional<Device> device_of_gpu_array(nb::handle object) {
  const bool is_array = nb::hasattr(object, "__cuda_array_interface__") ||
                        (nb::hasattr(object, "__dlpack__") && !PyObject_CheckBuffer(object.ptr()));
  if (!is_array) return std::nullopt;
  try {
    const Device device = import_any(object, std::nullopt).device();
    return device.is_cpu() ? std::nullopt : std::optional(device);
  } catch (...) {
    return std::nullopt;
  }
}

Device device_of_call() {
  if (const auto device = first_of_call(device_of_tensor)) return *device;
  if (const auto device = first_of_call(device_of_gpu_array)) return *device;
  return backend::current_device();
}

}  // namespace

Tensor placed(nb::handle object, const Tensor& tensor) {
  if (nb::isinstance<Tensor>(object) || !tensor.device().is_cpu()) return tensor;
  const Device device = device_of_call();
  if (device.is_cpu()) return tensor;
  const nb::gil_scoped_release released;
  return to_device(tensor, device);
}

}  // namespace cuop::python
