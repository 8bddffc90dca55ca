#include "cuop/operators/vectors.h"

#include "cuop/ops/blas/blas.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/output.h"

namespace cuop {

template <class T>
Task Scal<T>::task(const Tensor& x) const {
  Task task;
  check(x, "x");
  task.sizes = sizes_of({&x});
  task.cost = {static_cast<double>(x.size()), 2 * x.nbytes()};
  task.reads_out = true;
  task.out = x;
  task.run = [alpha = alpha_](const Tensor& out) { scal(alpha, out, &out); };
  return task;
}

template <class T>
Task Axpy<T>::task(const Tensor& x, const Tensor& y) const {
  Task task;
  check(x, "x");
  check(y, "y");
  task.sizes = sizes_of({&x});
  task.cost = {2.0 * static_cast<double>(x.size()), bytes_of(x, y, y)};
  task.reads_out = true;
  task.out = y;
  task.run = [alpha = alpha_, x](const Tensor& out) { axpy(alpha, x, out, &out); };
  return task;
}

template <class T>
Task Copy<T>::task(const Tensor& x, const Tensor& y) const {
  Task task;
  check(x, "x");
  check(y, "y");
  common_device(name().c_str(), {&x, &y});
  task.out = prepare_output(name().c_str(), &y, x.shape(), dtype(), x.device());
  task.sizes = sizes_of({&x});
  task.cost = {0.0, bytes_of(x, y)};
  task.run = [x](const Tensor& out) { copy_into(out, x); };
  return task;
}

template <class T>
double Dot<T>::forward(const Tensor& x, const Tensor& y) const {
  return guarded([&] {
    check(x, "x");
    check(y, "y");
    return std::get<double>(dot(x, y));
  });
}

template <class T>
Cost Dot<T>::cost(const Tensor& x, const Tensor& y) const {
  return {2.0 * static_cast<double>(x.size()), bytes_of(x, y)};
}

template class Scal<float>;
template class Scal<double>;
template class Axpy<float>;
template class Axpy<double>;
template class Copy<float>;
template class Copy<double>;
template class Dot<float>;
template class Dot<double>;

}  // namespace cuop
