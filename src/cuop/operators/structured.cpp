#include "cuop/operators/structured.h"

namespace cuop {

template <class T>
void Symm<T>::set_weight(const Tensor& a) {
  guarded([&] {
    check(a, "weight A");
    check_square(a, "weight A");
    weight_.set(a);
  });
}

template <class T>
Task Symm<T>::task(const Tensor& b, const Tensor& c) const {
  Task task;
  const Tensor a = weight_.get();
  check(b, "B");
  check(c, "C");
  const bool reads_c = options_.beta.to_double() != 0.0;
  task.sizes = sizes_of({&a, &b});
  task.cost.flops = 2.0 * static_cast<double>(c.size()) * static_cast<double>(a.shape(0));
  task.cost.bytes = a.nbytes() / 2 + bytes_of(b, c) + (reads_c ? c.nbytes() : 0);
  task.reads_out = reads_c;
  task.out = c;
  task.run = [a, b, options = options_](const Tensor& out) { symm(a, b, options, &out); };
  return task;
}

template <class T>
void Trsm<T>::set_matrix_a(const Tensor& a) {
  guarded([&] {
    check(a, "matrix A");
    check_square(a, "matrix A");
    matrix_.set(a);
  });
}

template <class T>
Task Trsm<T>::task(const Tensor& b, const Tensor& x) const {
  Task task;
  const Tensor a = matrix_.get();
  check(b, "B");
  check(x, "X");
  task.sizes = sizes_of({&a, &b});
  task.cost.flops = static_cast<double>(b.size()) * static_cast<double>(a.shape(0));
  task.cost.bytes = a.nbytes() / 2 + bytes_of(b, x);
  task.out = x;
  task.run = [a, b, options = options_](const Tensor& out) { trsm(a, b, options, &out); };
  return task;
}

template class Symm<float>;
template class Symm<double>;
template class Trsm<float>;
template class Trsm<double>;

}  // namespace cuop
