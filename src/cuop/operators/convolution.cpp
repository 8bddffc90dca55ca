#include "cuop/operators/convolution.h"

#include "cuop/backend/execution.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/operators/sizes.h"

namespace cuop {

template <class T>
Convolution2D<T>::Convolution2D(const Convolution2DOptions& options)
    : Operator("Convolution2D", dtype_of<T>), options_(options) {
  check_sizes(name(), {{"in_channels", options.in_channels, 1},
                       {"out_channels", options.out_channels, 1},
                       {"kernel_h", options.kernel_h, 1},
                       {"kernel_w", options.kernel_w, 1},
                       {"stride_h", options.stride_h, 1},
                       {"stride_w", options.stride_w, 1},
                       {"pad_h", options.pad_h, 0},
                       {"pad_w", options.pad_w, 0},
                       {"dilation_h", options.dilation_h, 1},
                       {"dilation_w", options.dilation_w, 1},
                       {"groups", options.groups, 1}});
  if (options.in_channels % options.groups != 0 || options.out_channels % options.groups != 0) {
    throw ShapeError(cat(name(), ": groups is ", options.groups, ", it must divide in_channels (",
                         options.in_channels, ") and out_channels (", options.out_channels, ")"));
  }
  int64_t bytes = itemsize(dtype());
  for (const int64_t size : weight_shape()) {
    bytes = checked_multiply(bytes, size, cat(name(), ": the bytes of the weight").c_str());
  }
}

template <class T>
Shape Convolution2D<T>::weight_shape() const {
  return {options_.out_channels, options_.in_channels / options_.groups, options_.kernel_h,
          options_.kernel_w};
}

template <class T>
void Convolution2D<T>::set_weight(const Tensor& weight) {
  guarded([&] {
    check(weight, "weight");
    const Shape needed = weight_shape();
    if (!(weight.shape() == needed)) {
      throw ShapeError(cat("weight has shape ", weight.shape(), ", needed is ", needed,
                           " (out_channels, in_channels / groups, kernel_h, kernel_w)"));
    }
    const std::lock_guard lock(prepared_->mutex);
    weight_.set(weight);
    prepared_->cache = std::make_shared<ConvWeightCache>();
  });
}

template <class T>
void Convolution2D<T>::set_bias(const Tensor& bias) {
  guarded([&] {
    check(bias, "bias");
    if (!(bias.shape() == Shape{options_.out_channels})) {
      throw ShapeError(cat("bias has shape ", bias.shape(), ", needed is ",
                           Shape{options_.out_channels}, " (out_channels)"));
    }
    bias_.set(bias);
  });
}

template <class T>
Task Convolution2D<T>::task(const Tensor& x, const Tensor& y, std::optional<int64_t> pad_h,
                            std::optional<int64_t> pad_w) const {
  Task task;
  const auto [weight, cache] = [this] {
    const std::lock_guard lock(prepared_->mutex);
    return std::pair{weight_.get(), prepared_->cache};
  }();
  const Tensor bias = bias_.get_or_none();
  check(x, "x");
  check(y, "y");
  check_sizes(name(), {{"pad_h", pad_h.value_or(0), 0}, {"pad_w", pad_w.value_or(0), 0}});
  ConvOptions options;
  options.stride = {options_.stride_h, options_.stride_w};
  options.padding = {pad_h.value_or(options_.pad_h), pad_w.value_or(options_.pad_w)};
  options.dilation = {options_.dilation_h, options_.dilation_w};
  options.groups = options_.groups;
  options.activation = options_.activation;
  task.sizes = sizes_of(
      {&x, &weight}, {options_.stride_h, options_.stride_w, options.padding[0], options.padding[1],
                      options_.dilation_h, options_.dilation_w, options_.groups, bias.is_defined(),
                      static_cast<int64_t>(options_.activation)});
  const int64_t terms = weight.size() / options_.out_channels;
  task.cost.flops = 2.0 * static_cast<double>(y.size()) * static_cast<double>(terms);
  task.cost.bytes = bytes_of(x, weight, y);
  task.kernels = kTiledOrSimple;
  task.gpu_kernels = kConvolutionOnGpu;
  task.out = y;
  task.run = [x, weight = weight, cache = cache, bias, options](const Tensor& out) {
    ConvOptions asked = options;
    asked.cache = cache.get();
    const Kernel& kernel = backend::execution_options().kernel;
    const bool is_own = kernel.type == KernelType::kSimple || kernel.shape.each != 0;
    if (is_own) asked.variant = ConvVariant::kDirect;
    conv2d(x, weight, bias.is_defined() ? &bias : nullptr, asked, &out);
  };
  task.on_cpu = [x, weight = weight, bias, options](const Tensor& out) {
    const Tensor own_bias = copy_on_cpu(bias);
    conv2d(copy_on_cpu(x), copy_on_cpu(weight), bias.is_defined() ? &own_bias : nullptr, options,
           &out);
  };
  return task;
}

template class Convolution2D<float>;
template class Convolution2D<double>;

}  // namespace cuop
