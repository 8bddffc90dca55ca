// BLAS level 1 as operator objects, for float and double.
#pragma once

#include "cuop/operators/operator.h"

namespace cuop {

/// x <- alpha x, of any shape.
template <class T>
class Scal : public Operator {
 public:
  explicit Scal(double alpha = 1.0) : Operator("Scal", dtype_of<T>), alpha_(alpha) {}
  Tensor forward(const Tensor& x) const { return run_task(*this, x); }
  Task task(const Tensor& x) const;

 private:
  double alpha_;
};

/// y <- alpha x + y for equal shapes.
template <class T>
class Axpy : public Operator {
 public:
  explicit Axpy(double alpha = 1.0) : Operator("Axpy", dtype_of<T>), alpha_(alpha) {}
  Tensor forward(const Tensor& x, const Tensor& y) const { return run_task(*this, x, y); }
  Task task(const Tensor& x, const Tensor& y) const;

 private:
  double alpha_;
};

/// y <- x for equal shapes. y may share memory with x.
template <class T>
class Copy : public Operator {
 public:
  Copy() : Operator("Copy", dtype_of<T>) {}
  Tensor forward(const Tensor& x, const Tensor& y) const { return run_task(*this, x, y); }
  Task task(const Tensor& x, const Tensor& y) const;
};

/// Sum of x[i] y[i] of two vectors; the sum is kept in double precision.
template <class T>
class Dot : public Operator {
 public:
  Dot() : Operator("Dot", dtype_of<T>) {}
  double forward(const Tensor& x, const Tensor& y) const;
  Cost cost(const Tensor& x, const Tensor& y) const;
};

}  // namespace cuop
