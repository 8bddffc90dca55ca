// New tensors. Shapes are in elements; a size that overflows is a ShapeError, one that does not fit
// the device a MemoryError. A number that the dtype cannot hold is an OverflowError (fractions are
// cut off by integer dtypes), a complex one for a real dtype a DTypeError.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "cuop/core/scalar.h"
#include "cuop/core/tensor.h"
#include "cuop/ops/create/empty.h"

namespace cuop {

Tensor zeros(const Shape& shape, DType dtype = DType::kFloat32, Device device = kCpu);
Tensor ones(const Shape& shape, DType dtype = DType::kFloat32, Device device = kCpu);
Tensor full(const Shape& shape, Scalar value, DType dtype = DType::kFloat32, Device device = kCpu);
/// Ones where column - row == k.
Tensor eye(int64_t rows, int64_t columns, int64_t k = 0, DType dtype = DType::kFloat32,
           Device device = kCpu);
/// start, start+step, ... short of stop, in integers when all three are, else in float64;
/// ExecutionError when step is 0.
Tensor arange(Scalar start, Scalar stop, Scalar step, DType dtype, Device device = kCpu);
/// `count` values from start to stop, the last included unless `endpoint` is false.
Tensor linspace(double start, double stop, int64_t count, DType dtype = DType::kFloat32,
                bool endpoint = true, Device device = kCpu);
/// base ** linspace(start, stop), the same bits on every device; OverflowError where an integer
/// dtype does not hold a value.
Tensor logspace(double start, double stop, int64_t count, double base = 10.0,
                DType dtype = DType::kFloat32, bool endpoint = true, Device device = kCpu);
/// Coordinate tensors of the grid of 1-D axes: NumPy's meshgrid; `indexing` is "xy" or "ij".
std::vector<Tensor> meshgrid(std::span<const Tensor> axes, std::string_view indexing = "xy");

/// Sets every element.
void fill(const Tensor& tensor, Scalar value);
/// The number as a tensor of no dimensions; errors name `who`.
Tensor scalar_tensor(const char* who, const Scalar& value, DType dtype, Device device = kCpu);

/// A contiguous CPU tensor holding a copy of the values.
template <class T>
Tensor from_values(const Shape& shape, std::span<const T> values);
template <class T>
Tensor from_values(const Shape& shape, std::initializer_list<T> values) {
  return from_values<T>(shape, std::span<const T>(values.begin(), values.size()));
}

// ---------------------------------------------------------------------------------------------

namespace detail {
Tensor from_bytes(const Shape& shape, DType dtype, const void* data, int64_t count);
}

template <class T>
Tensor from_values(const Shape& shape, std::span<const T> values) {
  return detail::from_bytes(shape, dtype_of<T>, values.data(), static_cast<int64_t>(values.size()));
}

}  // namespace cuop
