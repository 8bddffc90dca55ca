// Arrays of other libraries as tensors and tensors as theirs, without a copy.
#pragma once

#include "bindings.h"
#include "cuop/core/stream.h"

namespace cuop::python {

/// A function of NumPy.
nb::object numpy(const char* function);

/// A view of anything array-like, of its memory where it has any. Arrays keep their own dtype;
/// numbers and lists of them take the given one (OverflowError when it cannot hold one), else
/// float32, int64, bool or complex64.
Tensor import_any(nb::handle object, std::optional<DType> dtype);
/// A view of an array of NumPy, or of a copy of one that is byte-swapped, misaligned or of odd
/// strides.
Tensor import_numpy(nb::handle array);
/// Numbers, and nested lists of them, exactly: OverflowError for one that the dtype, or without it
/// any integer dtype, does not hold.
Tensor import_numbers(nb::handle object, std::optional<DType> dtype);
/// Anything array-like that is about to be used with a tensor of this dtype: import_any, placed.
Tensor import_values(nb::handle object, DType dtype);
/// The same for an argument of the call that is being made, which an error names.
Tensor named_values(nb::handle object, DType dtype, const char* argument);

/// A view of an object that exports DLPack; BufferError-like problems are typed errors.
Tensor import_dlpack(nb::handle object);
/// A PyCapsule: versioned when the consumer's `max_version` is at least (1, 0), which can then say
/// whether the tensor is a copy made for it.
nb::object export_dlpack(const Tensor& tensor, bool is_versioned, bool is_copied);
/// (device type, device index) as DLPack counts them.
std::pair<int, int> dlpack_device(Device device);

/// A stream as DLPack and __cuda_array_interface__ number it (1 is the default stream), and back.
int64_t stream_number(Stream stream);
Stream stream_of_number(Device device, int64_t number);
/// Lets the consumer's stream wait for the tensor's; None is the default stream, -1 asks for
/// nothing. ExecutionError for a number that means nothing.
void order_for_consumer(const char* who, const Tensor& tensor, nb::handle stream);

/// The dictionary of __cuda_array_interface__; AttributeError for what it cannot express.
nb::object export_cuda_array(const Tensor& tensor);
/// A view of an object that has __cuda_array_interface__.
Tensor import_cuda_array(nb::handle object);

/// A view of an object with the buffer protocol (NumPy array, memoryview, array.array, bytes);
/// nullopt when it has none or its format is not native numbers.
std::optional<Tensor> import_buffer(nb::handle object);
/// Slots that give Tensor the buffer protocol.
PyType_Slot* buffer_slots();

/// bfloat16, which NumPy has not, as float32; others themselves.
Tensor for_numpy(const Tensor& tensor);
/// The elements as a new NumPy array; DTypeError for bfloat16.
nb::object to_numpy(const Tensor& tensor);
/// Tensor.__array__: without a copy where NumPy can share the memory; ValueError when copy=False
/// and it cannot.
nb::object array_of(const Tensor& self, nb::handle dtype, nb::handle copy);
/// Tensor.__dlpack__: without a copy unless it is asked for, on another device, or has negative
/// strides; BufferError when copy=False and it must be copied.
nb::object dlpack_of(const Tensor& self, nb::handle stream, nb::handle max_version,
                     nb::handle dl_device, nb::handle copy);

}  // namespace cuop::python
