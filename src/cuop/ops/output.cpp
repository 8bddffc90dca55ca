#include "cuop/ops/output.h"

#include "cuop/core/text.h"
#include "cuop/jit/recording.h"
#include "cuop/ops/create/empty.h"

namespace cuop {

Tensor prepare_output(const char* who, const Tensor* out, const Shape& shape, DType dtype,
                      Device device) {
  if (out == nullptr || !out->is_defined()) return empty(shape, dtype, device);
  if (!(out->shape() == shape)) {
    throw ShapeError(cat(who, ": the output has shape ", out->shape(), ", needed is ", shape));
  }
  if (out->dtype() != dtype) {
    throw DTypeError(cat(who, ": the output has dtype ", out->dtype(), ", needed is ", dtype));
  }
  if (out->device() != device) {
    throw DeviceError(
        cat(who, ": the output is on ", out->device(), ", the inputs are on ", device));
  }
  check_writable(who, *out);
  return *out;
}

void check_writable(const char* who, const Tensor& out) {
  if (out.storage()->is_read_only()) {
    throw ExecutionError(cat(who, ": the output is read-only memory; pass a copy"));
  }
  if (may_self_overlap(out.layout())) {
    throw ExecutionError(cat(who, ": the output's elements share memory (shape ", out.shape(),
                             ", strides ", out.strides(), "); pass a copy"));
  }
  jit::before_write(out);
}

void check_no_overlap(const char* who, const Tensor& out, const Tensor& input,
                      const char* input_name) {
  if (may_overlap(out, input)) {
    throw ExecutionError(cat(who, ": the output shares memory with ", input_name,
                             "; pass another output or a copy of ", input_name));
  }
}

void check_same_or_no_overlap(const char* who, const Tensor& out, const Tensor& input,
                              const char* input_name) {
  if (!is_same_view(out, input)) check_no_overlap(who, out, input, input_name);
}

Device common_device(const char* who, std::initializer_list<const Tensor*> tensors) {
  const Tensor* first = nullptr;
  for (const Tensor* tensor : tensors) {
    if (tensor == nullptr || !tensor->is_defined()) continue;
    if (first == nullptr) first = tensor;
    if (tensor->device() != first->device()) {
      throw DeviceError(cat(who, ": the tensors are on ", first->device(), " and ",
                            tensor->device(), "; move one with to()"));
    }
  }
  return first != nullptr ? first->device() : kCpu;
}

}  // namespace cuop
