#include "cuop/operators/products.h"

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/ops/blas/blas.h"

namespace cuop {

namespace {

constexpr Kernel kProductKernels[] = {{KernelType::kTiled},
                                      {KernelType::kSimple},
                                      {KernelType::kTiled, 32},
                                      {KernelType::kTiled, 96}};

/// What all products share: function(a, b, options, &out) by any kernel and any tile, and the cost
/// of sums over `depth`.
template <class Options>
void set_product(Task& task,
                 Tensor (*function)(const Tensor&, const Tensor&, const Options&, const Tensor*),
                 const Tensor& a, const Tensor& b, const Options& options, const Tensor& out,
                 int64_t depth, std::initializer_list<int64_t> flags, bool reads_out) {
  task.sizes = sizes_of({&a, &b}, flags);
  task.cost.flops = 2.0 * static_cast<double>(out.size()) * static_cast<double>(depth);
  task.cost.bytes = out.nbytes() * (reads_out ? 2 : 1) + bytes_of(a, b);
  task.kernels = kProductKernels;
  task.reads_out = reads_out;
  task.out = out;
  const auto compute = [function, options](const Tensor& c, const auto&... operands) {
    function(operands..., options, &c);
  };
  set_work(task, compute, a, b);
}

/// Terms of each sum of a product: the last axis of op(a).
int64_t depth_of(const Tensor& a, bool trans_a) {
  if (a.ndim() == 0) return 1;
  return trans_a && a.ndim() > 1 ? a.shape(a.ndim() - 2) : a.shape().back();
}

}  // namespace

template <class T>
Task Gemm<T>::task(const Tensor& a, const Tensor& c) const {
  Task task;
  const Tensor b = weight_.get();
  check(a, "A");
  check_ndim(a, 2, "A");
  check(c, "C");
  const MatmulOptions options{trans_a_, trans_b_, alpha_, beta_};
  set_product(task, &matmul, a, b, options, c, depth_of(a, trans_a_),
              {trans_a_, trans_b_, beta_ != 0.0}, beta_ != 0.0);
  return task;
}

template <class T>
Task Gemv<T>::task(const Tensor& x, const Tensor& y) const {
  Task task;
  const Tensor a = weight_.get();
  check(x, "x");
  check(y, "y");
  const GemvOptions options{trans_a_ ? Trans::kTrans : Trans::kNone, alpha_, beta_};
  set_product(task, &gemv, a, x, options, y, x.size(), {trans_a_, beta_ != 0.0}, beta_ != 0.0);
  task.gpu_kernels = kMatrixVectorOnGpu;
  return task;
}

template <class T>
Task MatMul<T>::task(const Tensor& a, const Tensor& b, const Tensor& out) const {
  Task task;
  check(a, "a");
  check(b, "b");
  check(out, "out");
  const MatmulOptions options{trans_a_, trans_b_};
  set_product(task, function_, a, b, options, out, depth_of(a, trans_a_), {trans_a_, trans_b_},
              false);
  return task;
}

template <class T>
Task MatMul<T>::task(const Tensor& a, const Tensor& out) const {
  return task(a, weight_.get(), out);
}

template <class T>
Tensor BatchMatMul<T>::multiply(const Tensor& a, const Tensor& b, const MatmulOptions& options,
                                const Tensor* out) {
  if (a.ndim() >= 3 && b.ndim() == 2) return matmul(a, b, options, out);
  bool fits = a.ndim() >= 3 && a.ndim() == b.ndim();
  for (int i = 0; fits && i + 2 < a.ndim(); ++i) fits = a.shape(i) == b.shape(i);
  if (fits) return batch_matmul(a, b, options, out);
  throw ShapeError(cat("a has shape ", a.shape(), " and b ", b.shape(),
                       "; needed are at least 3 dimensions of a, and either b with as many and "
                       "equal leading axes, or a matrix b, which serves the whole batch"));
}

template class Gemm<float>;
template class Gemm<double>;
template class Gemv<float>;
template class Gemv<double>;
template class MatMul<float>;
template class MatMul<double>;
template class BatchMatMul<float>;
template class BatchMatMul<double>;

}  // namespace cuop
