// Products and solves with a structured matrix as operator objects, for float and double.
#pragma once

#include "cuop/operators/operator.h"
#include "cuop/ops/blas/blas.h"

namespace cuop {

/// C <- alpha A B + beta C, or alpha B A + beta C for Side::kRight, with the symmetric weight A of
/// which one triangle is read. C must not share memory with B.
template <class T>
class Symm : public Operator {
 public:
  explicit Symm(Side side = Side::kLeft, Uplo uplo = Uplo::kUpper, double alpha = 1.0,
                double beta = 0.0)
      : Operator("Symm", dtype_of<T>), options_{side, uplo, alpha, beta} {}
  void set_weight(const Tensor& a);
  Tensor forward(const Tensor& b, const Tensor& c) const { return run_task(*this, b, c); }
  Task task(const Tensor& b, const Tensor& c) const;

 private:
  SymmOptions options_;
  Weight weight_{"weight A", "set_weight"};
};

/// Solves op(A) X = alpha B, or X op(A) = alpha B for Side::kRight, with the triangular matrix A.
/// X may be B.
template <class T>
class Trsm : public Operator {
 public:
  explicit Trsm(Side side = Side::kLeft, Uplo uplo = Uplo::kLower, Trans trans = Trans::kNone,
                Diag diag = Diag::kNonUnit, double alpha = 1.0)
      : Operator("Trsm", dtype_of<T>), options_{side, uplo, trans, diag, alpha} {}
  void set_matrix_a(const Tensor& a);
  Tensor forward(const Tensor& b, const Tensor& x) const { return run_task(*this, b, x); }
  Task task(const Tensor& b, const Tensor& x) const;

 private:
  TrsmOptions options_;
  Weight matrix_{"matrix A", "set_matrix_a"};
};

}  // namespace cuop
