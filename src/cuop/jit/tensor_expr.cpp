#include "cuop/jit/tensor_expr.h"

#include "cuop/jit/run.h"

namespace cuop::jit {

int TensorExpr::leaf(const Tensor& tensor) {
  leaves_.at(static_cast<size_t>(expr_.leaf_count())) = &tensor;
  return expr_.add_leaf(tensor.dtype());
}

int TensorExpr::number(const Scalar& value, DType dtype) {
  numbers_.at(static_cast<size_t>(expr_.parameter_count())) = value;
  return expr_.add_parameter(dtype);
}

int TensorExpr::op(const char* name, std::initializer_list<int> arguments) {
  const int code = find_op(name);
  const Rule rule = op_table()[static_cast<size_t>(code)].rule;
  const DType compute = expr_.node(*(arguments.end() - 1)).dtype;
  DType result = rule == Rule::kReal ? real_dtype(compute) : compute;
  if (rule == Rule::kBool) result = DType::kBool;
  return expr_.add_op(code, {compute, result}, {arguments.begin(), arguments.size()});
}

void TensorExpr::add_output(int node, const Tensor& result) {
  outputs_.at(expr_.outputs().size()) = &result;
  expr_.add_output(node);
}

void TensorExpr::add_reduction(ReduceKind kind, int node, const Tensor& result, MomentsPart part) {
  add_output(expr_.add_reduce(kind, node, part), result);
}

void TensorExpr::run(const Shape& shape, int reduced) const {
  const auto first = [](const auto& all, auto count) {
    return std::span(all).first(static_cast<size_t>(count));
  };
  jit::run(expr_,
           {shape, reduced, first(leaves_, expr_.leaf_count()),
            first(numbers_, expr_.parameter_count()), first(outputs_, expr_.outputs().size())});
}

void TensorExpr::reduce(ReduceKind kind, int node, const Shape& shape, int reduced,
                        const Tensor& result) {
  add_reduction(kind, node, result);
  run(shape, reduced);
}

void TensorExpr::write(int node, const Tensor& result) {
  add_output(expr_.add_cast(node, result.dtype()), result);
  run(result.shape(), 0);
}

}  // namespace cuop::jit
