// Preallocated outputs: one place that says what is allowed.
#pragma once

#include <initializer_list>

#include "cuop/core/tensor.h"

namespace cuop {

/// `*out` after checking its shape, dtype, device, writability and that its elements do not share
/// memory among themselves; a new uninitialised tensor when `out` is null. Errors name `who`.
Tensor prepare_output(const char* who, const Tensor* out, const Shape& shape, DType dtype,
                      Device device);

/// ExecutionError when `out` is read-only or two of its elements share memory. Recorded work that
/// still has to read that memory is run first.
void check_writable(const char* who, const Tensor& out);

/// ExecutionError when `out` shares memory with `input`.
void check_no_overlap(const char* who, const Tensor& out, const Tensor& input,
                      const char* input_name);
/// As above, but exactly the same elements are allowed (element-wise work in place).
void check_same_or_no_overlap(const char* who, const Tensor& out, const Tensor& input,
                              const char* input_name);

/// DeviceError when the tensors are not all on one device; returns that device.
Device common_device(const char* who, std::initializer_list<const Tensor*> tensors);

}  // namespace cuop
