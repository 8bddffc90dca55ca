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

/// The part that all products share: any kernel, any tile, and the cost of sums over `depth`.
Task product_task(std::initializer_list<const Tensor*> inputs, const Tensor& out, int64_t depth,
                  std::initializer_list<int64_t> flags, bool reads_out) {
  Task task;
  task.sizes = sizes_of(inputs, flags);
  task.cost.flops = 2.0 * static_cast<double>(out.size()) * static_cast<double>(depth);
  task.cost.bytes = out.nbytes() * (reads_out ? 2 : 1);
  for (const Tensor* input : inputs) task.cost.bytes += input->nbytes();
  task.kernels = kProductKernels;
  task.reads_out = reads_out;
  task.out = out;
  return task;
}

/// Terms of each sum of a product: the last axis of op(a).
int64_t depth_of(const Tensor& a, bool trans_a) {
  if (a.ndim() == 0) return 1;
  return trans_a && a.ndim() > 1 ? a.shape(a.ndim() - 2) : a.shape().back();
}

}  // namespace

template <class T>
Task Gemm<T>::task(const Tensor& a, const Tensor& c) const {
  const int64_t start_ns = trace::now_ns();
  const Tensor b = weight_.get();
  check(a, "A");
  check_ndim(a, 2, "A");
  check(c, "C");
  const MatmulOptions options{trans_a_, trans_b_, alpha_, beta_};
  Task task = product_task({&a, &b}, c, depth_of(a, trans_a_), {trans_a_, trans_b_, beta_ != 0.0},
                           beta_ != 0.0);
  task.start_ns = start_ns;
  task.run = [a, b, options](const Tensor& out) { matmul(a, b, options, &out); };
  task.on_cpu = [a, b, options](const Tensor& out) {
    matmul(copy_on_cpu(a), copy_on_cpu(b), options, &out);
  };
  return task;
}

template <class T>
Task Gemv<T>::task(const Tensor& x, const Tensor& y) const {
  const int64_t start_ns = trace::now_ns();
  const Tensor a = weight_.get();
  check(x, "x");
  check(y, "y");
  const GemvOptions options{trans_a_ ? Trans::kTrans : Trans::kNone, alpha_, beta_};
  Task task = product_task({&a, &x}, y, x.size(), {trans_a_, beta_ != 0.0}, beta_ != 0.0);
  task.start_ns = start_ns;
  task.gpu_kernels = kMatrixVectorOnGpu;
  task.run = [a, x, options](const Tensor& out) { gemv(a, x, options, &out); };
  task.on_cpu = [a, x, options](const Tensor& out) {
    gemv(copy_on_cpu(a), copy_on_cpu(x), options, &out);
  };
  return task;
}

template <class T>
Task MatMul<T>::task(const Tensor& a, const Tensor& b, const Tensor& out) const {
  const int64_t start_ns = trace::now_ns();
  check(a, "a");
  check(b, "b");
  check(out, "out");
  const MatmulOptions options{trans_a_, trans_b_};
  Task task = product_task({&a, &b}, out, depth_of(a, trans_a_), {trans_a_, trans_b_}, false);
  task.start_ns = start_ns;
  task.run = [function = function_, a, b, options](const Tensor& c) {
    function(a, b, options, &c);
  };
  task.on_cpu = [function = function_, a, b, options](const Tensor& c) {
    function(copy_on_cpu(a), copy_on_cpu(b), options, &c);
  };
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
