#include "cuop/operators/activations.h"

#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/softmax/softmax.h"

namespace cuop {

template <class T>
Task Relu<T>::task(const Tensor& x, const Tensor& y) const {
  Task task;
  check(x, "x");
  check(y, "y");
  task.sizes = sizes_of({&x});
  task.cost = {static_cast<double>(x.size()), bytes_of(x, y)};
  task.kernels = kTiledOrSimple;
  task.gpu_kernels = kElementwiseOnGpu;
  task.out = y;
  set_work(
      task, [](const Tensor& out, const Tensor& in) { relu(in, &out); }, x);
  return task;
}

template <class T>
Task Softmax<T>::task(const Tensor& x, const Tensor& y, int64_t axis) const {
  Task task;
  check(x, "x");
  check(y, "y");
  task.sizes = sizes_of({&x}, {axis});
  // Per element: a comparison, a subtraction, an exponential (counted as one), a sum, a product.
  task.cost = {5.0 * static_cast<double>(x.size()), bytes_of(x, y)};
  task.kernels = kTiledOrSimple;
  task.gpu_kernels = kRowsOnGpu;
  task.out = y;
  set_work(
      task, [axis](const Tensor& out, const Tensor& in) { softmax(in, axis, &out); }, x);
  return task;
}

template class Relu<float>;
template class Relu<double>;
template class Softmax<float>;
template class Softmax<double>;

}  // namespace cuop
