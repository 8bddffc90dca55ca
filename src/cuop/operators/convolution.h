// Convolution of images [N, C, H, W] as an operator object, for float and double.
#pragma once

#include <memory>
#include <optional>

#include "cuop/core/fork_mutex.h"
#include "cuop/operators/operator.h"
#include "cuop/ops/conv/conv.h"

namespace cuop {

struct Convolution2DOptions {
  int64_t in_channels = 0, out_channels = 0;
  int64_t kernel_h = 0, kernel_w = 0;
  int64_t stride_h = 1, stride_w = 1;
  int64_t pad_h = 0, pad_w = 0;
  int64_t dilation_h = 1, dilation_w = 1;
  int64_t groups = 1;
  ConvActivation activation = ConvActivation::kNone;
};

/// y <- conv2d(x, weight [O, I / groups, kh, kw]) + bias [O], rectified where the activation says
/// so; see cuop::conv2d for the sizes. y must not share memory with x.
template <class T>
class Convolution2D : public Operator {
 public:
  static constexpr GpuKernels kGpuKernels = GpuKernels::kCudnn;

  /// ShapeError for an option that makes no sense or a weight that no memory could hold.
  explicit Convolution2D(const Convolution2DOptions& options);
  void set_weight(const Tensor& weight);
  void set_bias(const Tensor& bias);
  /// The padding may be overridden for one call.
  Tensor forward(const Tensor& x, const Tensor& y, std::optional<int64_t> pad_h = {},
                 std::optional<int64_t> pad_w = {}) const {
    return run_task(*this, x, y, pad_h, pad_w);
  }
  Task task(const Tensor& x, const Tensor& y, std::optional<int64_t> pad_h = {},
            std::optional<int64_t> pad_w = {}) const;

 private:
  Shape weight_shape() const;

  Convolution2DOptions options_;
  Weight weight_{"weight", "set_weight"};
  Weight bias_{"bias", "set_bias"};
  struct Prepared {
    ForkMutex mutex;
    std::shared_ptr<ConvWeightCache> cache;
  };
  // Belongs to the weight of the moment: both change and are read under the mutex.
  std::shared_ptr<Prepared> prepared_ = std::make_shared<Prepared>();
};

}  // namespace cuop
