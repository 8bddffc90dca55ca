// What operators tell a Fused scope (jit/fusion.h): operations to record, writes to run before.
#pragma once

#include <optional>
#include <span>

#include "cuop/core/scalar.h"
#include "cuop/core/tensor.h"
#include "cuop/jit/expr.h"

namespace cuop::jit {

/// True inside a Fused scope of this thread with fusion on.
bool is_recording();

/// An operand as its operator got it: exactly one of the two is set.
struct Argument {
  const Tensor* tensor = nullptr;
  const Scalar* number = nullptr;
};

/// As of their tensors' layouts (core/layout.h).
Layout layout_of_result(const Shape& shape, std::span<const Argument> arguments);

/// Records an operation whose checks have passed; the returned tensor is computed later. Only while
/// recording.
Tensor record_op(int code, OpTypes types, const Shape& shape, Device device,
                 std::span<const Argument> arguments);
/// The same for a conversion; nothing when not recording, nor of complex numbers to real ones.
std::optional<Tensor> record_cast(const Tensor& tensor, DType dtype);
/// For the reduction operators to call first, after their checks: takes over a reduction of a
/// pending value over trailing axes (ascending, normalised) and returns its deferred result of
/// dtype `result`. Nothing when not recording or when it is not of that form.
std::optional<Tensor> record_reduction(ReduceKind kind, const Tensor& tensor,
                                       std::span<const int> axes, bool keepdims, DType result);

/// For every operator that writes to memory that exists: runs first what still has to read it.
void before_write(const Tensor& written);

}  // namespace cuop::jit
