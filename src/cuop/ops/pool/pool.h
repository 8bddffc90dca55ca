// Pooling over the spatial axes of channels-first images.
#pragma once

#include "cuop/core/tensor.h"

namespace cuop {

/// One value for each spatial axis or one for all of them.
struct PoolOptions {
  Dims kernel{};
  Dims stride{};   ///< empty: the kernel
  Dims padding{};  ///< empty: 0; at most half the kernel, so that every window meets the image
  /// avg_pool divides by the whole window, padding included; false: by the elements of the image.
  bool count_include_pad = true;
};

/// x [N, C, spatial...] -> [N, C, out...] with out = (in + 2 padding - kernel) / stride + 1,
/// rounded down. The largest element of each window; NaN when the window holds one. Padding never
/// wins. Integers and floating dtypes. Errors: ShapeError naming the argument (an output size below
/// 1 and a kernel beyond 2^31 - 1 too), DTypeError.
Tensor max_pool1d(const Tensor& x, const PoolOptions& options, const Tensor* out = nullptr);
Tensor max_pool2d(const Tensor& x, const PoolOptions& options, const Tensor* out = nullptr);
Tensor max_pool3d(const Tensor& x, const PoolOptions& options, const Tensor* out = nullptr);

/// As max_pool, with the mean of each window; padding counts as zeros. float16 and bfloat16
/// accumulate in float32; integers return float64, as mean does.
Tensor avg_pool1d(const Tensor& x, const PoolOptions& options, const Tensor* out = nullptr);
Tensor avg_pool2d(const Tensor& x, const PoolOptions& options, const Tensor* out = nullptr);
Tensor avg_pool3d(const Tensor& x, const PoolOptions& options, const Tensor* out = nullptr);

/// Over all spatial axes of x [N, C, spatial...]: [N, C, 1, ...], or [N, C] when `out` has that
/// shape.
Tensor global_max_pool(const Tensor& x, const Tensor* out = nullptr);
Tensor global_avg_pool(const Tensor& x, const Tensor* out = nullptr);
/// The same for images x [N, C, height, width] only.
Tensor global_max_pool2d(const Tensor& x, const Tensor* out = nullptr);
Tensor global_avg_pool2d(const Tensor& x, const Tensor* out = nullptr);

}  // namespace cuop
