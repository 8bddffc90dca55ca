#include "cuop/operators/pooling.h"

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/operators/sizes.h"

namespace cuop {

namespace {

void check_padding(const std::string& who, const char* axis, std::optional<int64_t> padding,
                   std::optional<int64_t> kernel) {
  if (!kernel || padding.value_or(0) <= *kernel / 2) return;
  throw ShapeError(cat(who, ": pad_", axis, " is ", *padding,
                       ", allowed is at most half of kernel_", axis, ", which is ", *kernel,
                       "; a window could miss the image"));
}

void check_options(const std::string& who, const Pool2DOptions& options) {
  check_sizes(who, {{"kernel_h", options.kernel_h.value_or(1), 1},
                    {"kernel_w", options.kernel_w.value_or(1), 1},
                    {"stride_h", options.stride_h.value_or(1), 1},
                    {"stride_w", options.stride_w.value_or(1), 1},
                    {"pad_h", options.pad_h.value_or(0), 0},
                    {"pad_w", options.pad_w.value_or(0), 0}});
  check_padding(who, "h", options.pad_h, options.kernel_h);
  check_padding(who, "w", options.pad_w, options.kernel_w);
}

/// The options of a call, and where it has none those of the operator.
Pool2DOptions merged(const Pool2DOptions& call, const Pool2DOptions& own) {
  const auto either = [](std::optional<int64_t> first, std::optional<int64_t> second) {
    return first ? first : second;
  };
  return {either(call.kernel_h, own.kernel_h), either(call.kernel_w, own.kernel_w),
          either(call.stride_h, own.stride_h), either(call.stride_w, own.stride_w),
          either(call.pad_h, own.pad_h),       either(call.pad_w, own.pad_w)};
}

}  // namespace

template <class T>
Pool2D<T>::Pool2D(const char* base_name, Function function, const Pool2DOptions& options)
    : Operator(base_name, dtype_of<T>), function_(function), options_(options) {
  check_options(name(), options);
}

template <class T>
Task Pool2D<T>::task(const Tensor& x, const Tensor& y, const Pool2DOptions& call) const {
  Task task;
  check(x, "x");
  check(y, "y");
  const Pool2DOptions asked = merged(call, options_);
  if (!asked.kernel_h || !asked.kernel_w) {
    throw ExecutionError(cat("the window has no ", !asked.kernel_h ? "kernel_h" : "kernel_w",
                             "; give it to the constructor or to forward"));
  }
  check_options(name(), asked);
  PoolOptions options;
  options.kernel = {*asked.kernel_h, *asked.kernel_w};
  options.stride = {asked.stride_h.value_or(*asked.kernel_h),
                    asked.stride_w.value_or(*asked.kernel_w)};
  options.padding = {asked.pad_h.value_or(0), asked.pad_w.value_or(0)};
  task.sizes = sizes_of({&x}, {options.kernel[0], options.kernel[1], options.stride[0],
                               options.stride[1], options.padding[0], options.padding[1]});
  task.cost = {
      static_cast<double>(y.size()) * static_cast<double>(options.kernel[0] * options.kernel[1]),
      bytes_of(x, y)};
  task.out = y;
  task.run = [function = function_, x, options](const Tensor& out) { function(x, options, &out); };
  return task;
}

template <class T>
Task GlobalPool2D<T>::task(const Tensor& x, const Tensor& y) const {
  Task task;
  check(x, "x");
  check_ndim(x, 4, "x");
  check(y, "y");
  task.sizes = sizes_of({&x});
  task.cost = {static_cast<double>(x.size()), bytes_of(x, y)};
  task.out = y;
  task.run = [function = function_, x](const Tensor& out) { function(x, &out); };
  return task;
}

template class Pool2D<float>;
template class Pool2D<double>;
template class GlobalPool2D<float>;
template class GlobalPool2D<double>;

}  // namespace cuop
