#include "cuop/ops/pool/pool.h"

#include <limits>

#include "cuop/backend/slot.h"
#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/dense_output.h"
#include "cuop/ops/output.h"
#include "cuop/ops/pool/pool_kernels.h"
#include "cuop/ops/spatial.h"

namespace cuop {

namespace {

using kernels::Pooling;

constexpr backend::Slot kPool{"pool", &kernels::pool_cpu, &kernels::pool_cuda};

/// Longer windows would reach far beyond any image that they may be centred on.
constexpr int64_t kMostKernel = std::numeric_limits<int32_t>::max();

void check_image(const char* who, const Tensor& x, int spatial) {
  visit_dtype(RealNumericTypes{}, x.dtype(), who, [](auto) {});
  if (x.ndim() != spatial + 2) {
    throw ShapeError(cat(who, ": x has shape ", x.shape(), "; it needs ", spatial + 2,
                         " dimensions (batch, channels, ", spatial, " spatial)"));
  }
  for (int i = 0; i < spatial; ++i) {
    if (x.shape(i + 2) == 0) {
      throw ShapeError(
          cat(who, ": x has shape ", x.shape(), "; its spatial axes must not be empty"));
    }
  }
}

Pooling check_pool(const char* who, const Tensor& x, const PoolOptions& options, int spatial,
                   bool is_max) {
  check_image(who, x, spatial);
  Pooling p;
  p.is_max = is_max;
  p.count_include_pad = options.count_include_pad;
  p.planes = x.shape(0) * x.shape(1);
  for (int i = 0; i < spatial; ++i) {
    const auto axis = static_cast<size_t>(3 - spatial + i);
    p.in[axis] = x.shape(i + 2);
    p.kernel[axis] = spatial_option(who, "kernel", options.kernel, i, spatial, 1);
    if (p.kernel[axis] > kMostKernel) {
      throw ShapeError(
          cat(who, ": kernel is ", options.kernel, "; it must be at most ", kMostKernel));
    }
    p.stride[axis] = options.stride.empty()
                         ? p.kernel[axis]
                         : spatial_option(who, "stride", options.stride, i, spatial, 1);
    p.padding[axis] = options.padding.empty()
                          ? 0
                          : spatial_option(who, "padding", options.padding, i, spatial, 0);
    if (p.padding[axis] > p.kernel[axis] / 2) {
      throw ShapeError(cat(who, ": padding ", p.padding[axis], " is more than half the kernel of ",
                           p.kernel[axis], " on spatial axis ", i,
                           "; a window could miss the image"));
    }
    const int64_t room = p.in[axis] + 2 * p.padding[axis] - p.kernel[axis];
    if (room < 0) {
      throw ShapeError(cat(who, ": spatial axis ", i, " of x has ", p.in[axis],
                           " elements; with padding ", p.padding[axis], " the kernel of ",
                           p.kernel[axis], " needs at least ",
                           p.kernel[axis] - 2 * p.padding[axis]));
    }
    p.out[axis] = room / p.stride[axis] + 1;
  }
  return p;
}

Tensor run(const char* who, const Pooling& p, const Tensor& x, const Shape& shape,
           const Tensor* out) {
  trace::Span span(who, "op");
  const Device device = common_device(who, {&x, out});
  const DType dtype = p.is_max ? x.dtype() : to_inexact(x.dtype());
  const Tensor result = prepare_output(who, out, shape, dtype, device);
  check_no_overlap(who, result, x, "x");
  span.add_bytes(x.nbytes() + result.nbytes());
  if (result.size() == 0) return result;
  fill_dense(result, dtype,
             [&](const Tensor& dense) { kPool(device, p, contiguous(cast(x, dtype)), dense); });
  return result;
}

Tensor pool(const char* who, const Tensor& x, const PoolOptions& options, int spatial, bool is_max,
            const Tensor* out) {
  const Pooling p = check_pool(who, x, options, spatial, is_max);
  Shape shape{x.shape(0), x.shape(1)};
  for (size_t i = static_cast<size_t>(3 - spatial); i < 3; ++i) shape.push_back(p.out[i]);
  return run(who, p, x, shape, out);
}

Tensor global_pool(const char* who, const Tensor& x, bool is_max, const Tensor* out) {
  if (x.ndim() < 3) {
    throw ShapeError(cat(who, ": x has shape ", x.shape(), "; it needs at least 3 dimensions"));
  }
  check_image(who, x, x.ndim() - 2);
  Pooling p;
  p.is_max = is_max;
  p.planes = x.shape(0) * x.shape(1);
  for (int i = 2; i < x.ndim(); ++i) p.in[2] *= x.shape(i);
  p.kernel = p.in;
  Shape shape{x.shape(0), x.shape(1)};
  if (out == nullptr || !(out->is_defined() && out->shape() == shape)) {
    while (shape.ndim() < x.ndim()) shape.push_back(1);
  }
  return run(who, p, x, shape, out);
}

}  // namespace

Tensor max_pool1d(const Tensor& x, const PoolOptions& options, const Tensor* out) {
  return pool("max_pool1d", x, options, 1, true, out);
}

Tensor max_pool2d(const Tensor& x, const PoolOptions& options, const Tensor* out) {
  return pool("max_pool2d", x, options, 2, true, out);
}

Tensor max_pool3d(const Tensor& x, const PoolOptions& options, const Tensor* out) {
  return pool("max_pool3d", x, options, 3, true, out);
}

Tensor avg_pool1d(const Tensor& x, const PoolOptions& options, const Tensor* out) {
  return pool("avg_pool1d", x, options, 1, false, out);
}

Tensor avg_pool2d(const Tensor& x, const PoolOptions& options, const Tensor* out) {
  return pool("avg_pool2d", x, options, 2, false, out);
}

Tensor avg_pool3d(const Tensor& x, const PoolOptions& options, const Tensor* out) {
  return pool("avg_pool3d", x, options, 3, false, out);
}

Tensor global_max_pool(const Tensor& x, const Tensor* out) {
  return global_pool("global_max_pool", x, true, out);
}

Tensor global_avg_pool(const Tensor& x, const Tensor* out) {
  return global_pool("global_avg_pool", x, false, out);
}

Tensor global_max_pool2d(const Tensor& x, const Tensor* out) {
  check_image("global_max_pool2d", x, 2);
  return global_pool("global_max_pool2d", x, true, out);
}

Tensor global_avg_pool2d(const Tensor& x, const Tensor* out) {
  check_image("global_avg_pool2d", x, 2);
  return global_pool("global_avg_pool2d", x, false, out);
}

}  // namespace cuop
