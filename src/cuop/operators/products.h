// Matrix products with a weight as operator objects, for float and double. Their dtypes are real: a
// conjugate transpose is the transpose.
#pragma once

#include "cuop/core/linalg.h"
#include "cuop/operators/operator.h"
#include "cuop/ops/matmul/matmul.h"

namespace cuop {

/// C <- alpha op(A) op(B) + beta C for matrices A, C and the weight B. C must not share memory with
/// A; with beta = 0 the values of C are not read.
template <class T>
class Gemm : public Operator {
 public:
  static constexpr bool kTakesTile = true;
  static constexpr GpuKernels kGpuKernels = GpuKernels::kCublasLt;

  explicit Gemm(TransLike trans_a = {}, TransLike trans_b = {}, double alpha = 1.0,
                double beta = 0.0)
      : Operator("Gemm", dtype_of<T>),
        trans_a_(trans_a.is_transposed()),
        trans_b_(trans_b.is_transposed()),
        alpha_(alpha),
        beta_(beta) {}
  void set_weight(const Tensor& b) { set(weight_, b, "weight B", 2); }
  Tensor forward(const Tensor& a, const Tensor& c) const { return run_task(*this, a, c); }
  Task task(const Tensor& a, const Tensor& c) const;

 private:
  bool trans_a_, trans_b_;
  double alpha_, beta_;
  Weight weight_{"weight B", "set_weight"};
};

/// y <- alpha op(A) x + beta y for vectors x, y and the weight A [M, N].
template <class T>
class Gemv : public Operator {
 public:
  static constexpr bool kTakesTile = true;
  static constexpr bool kTakesBlock = false;

  explicit Gemv(TransLike trans_a = {}, double alpha = 1.0, double beta = 0.0)
      : Operator("Gemv", dtype_of<T>),
        trans_a_(trans_a.is_transposed()),
        alpha_(alpha),
        beta_(beta) {}
  void set_weight(const Tensor& a) { set(weight_, a, "weight A", 2); }
  Tensor forward(const Tensor& x, const Tensor& y) const { return run_task(*this, x, y); }
  Task task(const Tensor& x, const Tensor& y) const;

 private:
  bool trans_a_;
  double alpha_, beta_;
  Weight weight_{"weight A", "set_weight"};
};

/// out <- op(a) op(b) by the rules of NumPy's matmul. b is an argument, or the weight.
template <class T>
class MatMul : public Operator {
 public:
  static constexpr bool kTakesTile = true;
  static constexpr GpuKernels kGpuKernels = GpuKernels::kCublasLt;

  explicit MatMul(TransLike trans_a = {}, TransLike trans_b = {})
      : MatMul("MatMul", &matmul, trans_a, trans_b) {}
  void set_weight(const Tensor& b) { set(weight_, b, "weight b"); }
  Tensor forward(const Tensor& a, const Tensor& b, const Tensor& out) const {
    return run_task(*this, a, b, out);
  }
  Tensor forward(const Tensor& a, const Tensor& out) const { return run_task(*this, a, out); }
  Task task(const Tensor& a, const Tensor& b, const Tensor& out) const;
  Task task(const Tensor& a, const Tensor& out) const;

 protected:
  using Function = Tensor (*)(const Tensor& a, const Tensor& b, const MatmulOptions& options,
                              const Tensor* out);
  MatMul(const char* base_name, Function function, TransLike trans_a, TransLike trans_b)
      : Operator(base_name, dtype_of<T>),
        function_(function),
        trans_a_(trans_a.is_transposed()),
        trans_b_(trans_b.is_transposed()) {}

 private:
  Function function_;
  bool trans_a_, trans_b_;
  Weight weight_{"weight b", "set_weight"};
};

/// MatMul of a [..., M, K] with at least 3 dimensions and b [..., K, N] with the leading axes of a,
/// or [K, N], which then serves the whole batch.
template <class T>
class BatchMatMul : public MatMul<T> {
 public:
  explicit BatchMatMul(TransLike trans_a = {}, TransLike trans_b = {})
      : MatMul<T>("BatchMatMul", &multiply, trans_a, trans_b) {}

 private:
  static Tensor multiply(const Tensor& a, const Tensor& b, const MatmulOptions& options,
                         const Tensor* out);
};

}  // namespace cuop
