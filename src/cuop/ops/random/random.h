// Random tensors from the counter-based generator Philox4x32-10 (Salmon et al., "Parallel random
// numbers: as easy as 1, 2, 3", SC'11). The same seed and calls give the same bits on every device
// and with any number of threads. Each takes `generator`, the process's one when null.
#pragma once

#include "cuop/core/scalar.h"
#include "cuop/core/tensor.h"
#include "cuop/ops/random/generator.h"

namespace cuop {

/// The options of a draw beside its distribution.
struct RandomOptions {
  DType dtype = DType::kFloat32;
  Device device = kCpu;
  Generator* generator = nullptr;
  const Tensor* out = nullptr;
};

/// Normal numbers by Box and Muller's method; float16, bfloat16, float32 (24-bit uniforms) and
/// float64 (53-bit uniforms). ExecutionError when std is negative.
Tensor normal(const Shape& shape, double mean, double std, const RandomOptions& options = {});
/// The same under the name that Python has for it, which errors and profiles say.
Tensor random(const Shape& shape, double mean, double std, const RandomOptions& options);
Tensor random(const Shape& shape, DType dtype = DType::kFloat32, double mean = 0.0,
              double std = 1.0);
/// Uniform in [low, high); ExecutionError unless low < high and both are finite.
Tensor uniform(const Shape& shape, double low = 0.0, double high = 1.0,
               const RandomOptions& options = {});
/// Integers in [low, high), each equally likely to within 2^-64 of bias times the range; any
/// integer dtype. ExecutionError when the range is empty or the dtype cannot hold it.
Tensor randint(int64_t low, int64_t high, const Shape& shape,
               const RandomOptions& options = {DType::kInt64});
/// Integers from `low` to `last`, both of them included: also the greatest of 64 bits. Errors as
/// those of randint; DTypeError unless both are integers.
Tensor randint_through(const Scalar& low, const Scalar& last, const Shape& shape,
                       const RandomOptions& options = {DType::kInt64});
/// A random order of 0, ..., n-1 (int64).
Tensor permutation(int64_t n, const RandomOptions& options = {DType::kInt64});

}  // namespace cuop
