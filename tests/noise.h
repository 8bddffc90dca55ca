// Random numbers for comparisons.
#pragma once

#include <random>

#include "cuop/core/tensor.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"

namespace cuop::test {

/// Uniform in [-1, 1), the same for the same seed, on the CPU.
inline Tensor noise(const Shape& shape, DType dtype, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> uniform(-1.0, 1.0);
  const Tensor made = empty(shape, DType::kFloat64);
  for (int64_t i = 0; i < made.size(); ++i) made.data<double>()[i] = uniform(generator);
  return cast(made, dtype);
}

}  // namespace cuop::test
