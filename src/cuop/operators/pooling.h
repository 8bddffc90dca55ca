// Pooling of images [N, C, H, W] as operator objects, for float and double.
#pragma once

#include <optional>

#include "cuop/operators/operator.h"
#include "cuop/ops/pool/pool.h"

namespace cuop {

/// Of an operator, or of one call: what the call does not give is the operator's.
struct Pool2DOptions {
  std::optional<int64_t> kernel_h{}, kernel_w{};  ///< here or there
  std::optional<int64_t> stride_h{}, stride_w{};  ///< the kernel where not given
  std::optional<int64_t> pad_h{}, pad_w{};        ///< 0 where not given; at most half the kernel
};

/// Largest element or mean of each window of x [N, C, H, W]; see cuop::max_pool2d, avg_pool2d.
template <class T>
class Pool2D : public Operator {
 public:
  Tensor forward(const Tensor& x, const Tensor& y, const Pool2DOptions& call = {}) const {
    return run_task(*this, x, y, call);
  }
  Task task(const Tensor& x, const Tensor& y, const Pool2DOptions& call = {}) const;

 protected:
  using Function = Tensor (*)(const Tensor& x, const PoolOptions& options, const Tensor* out);
  /// ShapeError for an option that makes no sense.
  Pool2D(const char* base_name, Function function, const Pool2DOptions& options);

 private:
  Function function_;
  Pool2DOptions options_;
};

template <class T>
class MaxPool2D : public Pool2D<T> {
 public:
  explicit MaxPool2D(const Pool2DOptions& options = {})
      : Pool2D<T>("MaxPool2D", &max_pool2d, options) {}
};

template <class T>
class AveragePool2D : public Pool2D<T> {
 public:
  explicit AveragePool2D(const Pool2DOptions& options = {})
      : Pool2D<T>("AveragePool2D", &avg_pool2d, options) {}
};

/// Largest element or mean of each channel's image: y [N, C, 1, 1] or [N, C].
template <class T>
class GlobalPool2D : public Operator {
 public:
  Tensor forward(const Tensor& x, const Tensor& y) const { return run_task(*this, x, y); }
  Task task(const Tensor& x, const Tensor& y) const;

 protected:
  using Function = Tensor (*)(const Tensor& x, const Tensor* out);
  GlobalPool2D(const char* base_name, Function function)
      : Operator(base_name, dtype_of<T>), function_(function) {}

 private:
  Function function_;
};

template <class T>
class GlobalMaxPool2D : public GlobalPool2D<T> {
 public:
  GlobalMaxPool2D() : GlobalPool2D<T>("GlobalMaxPool2D", &global_max_pool) {}
};

template <class T>
class GlobalAveragePool2D : public GlobalPool2D<T> {
 public:
  GlobalAveragePool2D() : GlobalPool2D<T>("GlobalAveragePool2D", &global_avg_pool) {}
};

}  // namespace cuop
