// The elements of tensors, for comparisons.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "cuop/core/tensor.h"
#include "cuop/ops/copy/copy.h"

namespace cuop::test {

/// In row-major order, of a tensor of this type on the CPU.
template <class T>
std::vector<T> values(const Tensor& x) {
  EXPECT_EQ(x.dtype(), dtype_of<T>);
  const Tensor dense = contiguous(cast(x, dtype_of<T>));
  return std::vector<T>(dense.data<T>(), dense.data<T>() + dense.size());
}
/// The same of numbers of any type.
inline std::vector<double> values(const Tensor& x) {
  return values<double>(cast(x, DType::kFloat64));
}

/// Whether tensors on the CPU have one shape, one dtype and the same bits.
inline bool same_bits(const Tensor& a, const Tensor& b) {
  const Tensor x = contiguous(a), y = contiguous(b);
  return x.shape() == y.shape() && x.dtype() == y.dtype() &&
         std::memcmp(x.data(), y.data(), static_cast<size_t>(x.nbytes())) == 0;
}

}  // namespace cuop::test
