// Level 1 on a GPU as generated kernels of one pass each, with the arithmetic of the CPU's loops.
#include "cuop/jit/expr.h"
#include "cuop/jit/run.h"
#include "cuop/ops/blas/blas_kernels.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"

namespace cuop::kernels {

namespace {

/// An operation computed in one dtype and answering it.
int add_op(jit::Expr& expr, const char* name, DType dtype, std::initializer_list<int> arguments) {
  return expr.add_op(jit::find_op(name), {dtype, dtype}, {arguments.begin(), arguments.size()});
}

/// What a dot product adds up in: integers modulo 2^64, of which the bits of their dtype are right.
DType sum_dtype(DType dtype) {
  if (is_complex(dtype)) return DType::kComplex128;
  if (is_floating(dtype)) return DType::kFloat64;
  return is_signed_integer(dtype) ? DType::kInt64 : DType::kUInt64;
}

}  // namespace

void axpy_cuda(const Scalar& alpha, const Tensor& x, const Tensor* y, const Tensor& out) {
  const DType dtype = compute_dtype(out.dtype());  // 16-bit floats are rounded by the cast alone
  jit::Expr expr;
  const int factor = expr.add_parameter(dtype);
  int value = add_op(expr, "multiply", dtype, {factor, expr.add_leaf(x.dtype())});
  if (y != nullptr) value = add_op(expr, "add", dtype, {value, expr.add_leaf(y->dtype())});
  expr.add_output(expr.add_cast(value, out.dtype()));
  const Tensor* const leaves[] = {&x, y};
  const Tensor* const output = &out;
  const size_t count = y != nullptr ? 2 : 1;
  jit::run(expr, {out.shape(), 0, {leaves, count}, {&alpha, 1}, {&output, 1}});
}

DotValue dot_cuda(const Tensor& x, const Tensor& y, bool conjugate) {
  const DType dtype = sum_dtype(x.dtype());
  const Tensor sum = zeros({}, dtype, x.device());
  if (x.size() > 0) {
    jit::Expr expr;
    int left = expr.add_cast(expr.add_leaf(x.dtype()), dtype);
    if (conjugate && is_complex(dtype)) left = add_op(expr, "conj", dtype, {left});
    const int right = expr.add_cast(expr.add_leaf(y.dtype()), dtype);
    const int product = add_op(expr, "multiply", dtype, {left, right});
    expr.add_output(expr.add_reduce(ReduceKind::kSum, product));
    const Tensor* const leaves[] = {&x, &y};
    const Tensor* const output = &sum;
    jit::run(expr, {x.shape(), 1, leaves, {}, {&output, 1}});
  }
  const Tensor host = to_device(sum, kCpu);  // the answer is a number of the host: this waits
  if (is_complex(dtype)) return *host.data<std::complex<double>>();
  if (is_floating(dtype)) return *host.data<double>();
  const Tensor wrapped = cast(cast(host, x.dtype()), dtype);
  if (is_signed_integer(dtype)) return *wrapped.data<int64_t>();
  return *wrapped.data<uint64_t>();
}

}  // namespace cuop::kernels
