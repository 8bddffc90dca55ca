#include "cuop/operators/pooling.h"

#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop {

template <class T>
Task Pool2D<T>::task(const Tensor& x, const Tensor& y, std::optional<int64_t> kernel_h,
                     std::optional<int64_t> kernel_w) const {
  Task task;
  check(x, "x");
  check(y, "y");
  const auto height = kernel_h ? kernel_h : options_.kernel_h;
  const auto width = kernel_w ? kernel_w : options_.kernel_w;
  if (!height || !width) {
    throw ExecutionError(cat("the window has no ", !height ? "kernel_h" : "kernel_w",
                             "; give it to the constructor or to forward"));
  }
  PoolOptions options;
  options.kernel = {*height, *width};
  options.stride = {options_.stride_h.value_or(*height), options_.stride_w.value_or(*width)};
  options.padding = {options_.pad_h, options_.pad_w};
  task.sizes = sizes_of({&x}, {*height, *width, options.stride[0], options.stride[1]});
  task.cost = {static_cast<double>(y.size()) * static_cast<double>(*height * *width),
               bytes_of(x, y)};
  task.out = y;
  task.run = [function = function_, x, options](const Tensor& out) { function(x, options, &out); };
  return task;
}

template <class T>
Tensor Pool2D<T>::forward(const Tensor& x, const Tensor& y, std::optional<int64_t> kernel_h,
                          std::optional<int64_t> kernel_w) const {
  return this->guarded([&] { return this->execute(task(x, y, kernel_h, kernel_w)); });
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

template <class T>
Tensor GlobalPool2D<T>::forward(const Tensor& x, const Tensor& y) const {
  return guarded([&] { return execute(task(x, y)); });
}

template class Pool2D<float>;
template class Pool2D<double>;
template class GlobalPool2D<float>;
template class GlobalPool2D<double>;

}  // namespace cuop
