// An expression that a kernel is made of, written beside the tensors and numbers that it is run on.
#pragma once

#include <array>
#include <initializer_list>

#include "cuop/jit/bindings.h"
#include "cuop/jit/expr.h"

namespace cuop::jit {

/// Tensors are of one iteration shape or broadcast to it, and outlive this object.
class TensorExpr {
 public:
  int leaf(const Tensor& tensor);
  int number(const Scalar& value, DType dtype);
  int cast(int node, DType dtype) { return expr_.add_cast(node, dtype); }
  /// Computed in the dtype of the last argument.
  int op(const char* name, std::initializer_list<int> arguments);

  void add_reduction(ReduceKind kind, int node, const Tensor& result,
                     MomentsPart part = MomentsPart::kAboutMean);
  /// Runs it on tensors of that shape, whose last `reduced` axes the reductions cover.
  void run(const Shape& shape, int reduced) const;

  /// One reduction, and runs.
  void reduce(ReduceKind kind, int node, const Shape& shape, int reduced, const Tensor& result);
  /// The node in the dtype of `result`, and runs.
  void write(int node, const Tensor& result);

 private:
  void add_output(int node, const Tensor& result);

  Expr expr_;
  // In the order of the expression, which knows how many there are.
  std::array<const Tensor*, 4> leaves_{};
  std::array<const Tensor*, 3> outputs_{};
  std::array<Scalar, 2> numbers_{};
};

}  // namespace cuop::jit
