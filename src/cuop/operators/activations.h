// Relu and softmax as operator objects, for float and double.
#pragma once

#include "cuop/operators/operator.h"

namespace cuop {

/// y <- max(x, 0), NaN stays NaN. y may be x.
template <class T>
class Relu : public Operator {
 public:
  Relu() : Operator("Relu", dtype_of<T>) {}
  Tensor forward(const Tensor& x, const Tensor& y) const { return run_task(*this, x, y); }
  Task task(const Tensor& x, const Tensor& y) const;
};

/// y <- exp(x - max) / sum(exp(x - max)) along `axis`. y may be x.
template <class T>
class Softmax : public Operator {
 public:
  Softmax() : Operator("Softmax", dtype_of<T>) {}
  Tensor forward(const Tensor& x, const Tensor& y, int64_t axis = -1) const {
    return run_task(*this, x, y, axis);
  }
  Task task(const Tensor& x, const Tensor& y, int64_t axis = -1) const;
};

}  // namespace cuop
