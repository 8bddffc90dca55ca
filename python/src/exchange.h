// Arrays of other libraries as tensors and tensors as theirs, without a copy.
#pragma once

#include "bindings.h"

namespace cuop::python {

/// A view of an object that exports DLPack; BufferError-like problems are typed errors.
Tensor import_dlpack(nb::handle object);
/// A PyCapsule: versioned when the consumer's `max_version` is at least (1, 0).
nb::object export_dlpack(const Tensor& tensor, bool is_versioned);
/// (device type, device index) as DLPack counts them.
std::pair<int, int> dlpack_device(const Tensor& tensor);

/// A view of an object with the buffer protocol (NumPy array, memoryview, array.array, bytes);
/// nullopt when it has none or its format is not native numbers.
std::optional<Tensor> import_buffer(nb::handle object);
/// Slots that give Tensor the buffer protocol.
PyType_Slot* buffer_slots();

}  // namespace cuop::python
