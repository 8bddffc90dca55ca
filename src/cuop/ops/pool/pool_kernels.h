// Internal: a pooling after all checks, brought to three spatial axes, and its CPU kernels.
#pragma once

#include <array>
#include <tuple>
#include <type_traits>

#include "cuop/core/tensor.h"
#include "cuop/jit/cuda/kernel_fwd.h"

namespace cuop::kernels {

struct Pooling {
  using Axes = std::array<int64_t, 3>;
  bool is_max = true;
  bool count_include_pad = true;
  int64_t planes = 0;  ///< batch * channels
  Axes in{1, 1, 1}, kernel{1, 1, 1}, out{1, 1, 1};
  Axes stride{1, 1, 1}, padding{0, 0, 0};

  static int64_t volume(const Axes& axes) { return axes[0] * axes[1] * axes[2]; }
  /// One window, the whole plane.
  bool is_global() const { return kernel == in && padding == Axes{0, 0, 0}; }
};

/// x and y are row-major with one dtype; every window meets its plane.
void pool_cpu(const Pooling& pool, const Tensor& x, const Tensor& y);
void pool_cuda(const Pooling& pool, const Tensor& x, const Tensor& y);

/// Loops over contiguous rows for one way to combine elements.
template <class T>
struct PoolRows {
  /// Sums over whole planes are accumulated in double.
  using Whole = std::conditional_t<std::is_integral_v<T>, T, double>;

  /// sum[i] <- sum[i] with row[i].
  void (*combine)(const T* row, int64_t count, T* sum);
  /// out[i] <- row[i * stride], ..., row[i * stride + kernel - 1] together.
  void (*slide)(const T* row, int64_t count, int64_t kernel, int64_t stride, T* out);
  /// All elements together.
  Whole (*all)(const T* values, int64_t count);
};

/// Integers have no sums: their means are computed in float64.
template <class T>
struct PoolLoops {
  PoolRows<T> max, sum;
};
using PoolKernels =
    std::tuple<PoolLoops<int8_t>, PoolLoops<int16_t>, PoolLoops<int32_t>, PoolLoops<int64_t>,
               PoolLoops<uint8_t>, PoolLoops<uint16_t>, PoolLoops<uint32_t>, PoolLoops<uint64_t>,
               PoolLoops<float>, PoolLoops<double>>;
template <class Level>
const PoolKernels& pool_kernels();

struct PoolForm {
  bool is_max = true;
  bool is_wide = false;       ///< indices of 64 bits
  int axes = 3;               ///< the last so many are longer than 1 in x or y
  int height = 0, width = 0;  ///< of a small window; 0: any
  bool is_packed = false;     ///< each row of a window is one aligned access
};
PoolForm pool_form(const Pooling& pool, const Tensor& x);
jit::TextKernel pool_kernel(DType dtype, const PoolForm& form);

}  // namespace cuop::kernels
