#include "cuop/jit/expr.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "cuop/core/error.h"
#include "cuop/jit/cpu/block_kernels.h"
#include "cuop/jit/kernels/op_list.h"

namespace cuop::jit {
namespace {

OpTypes infer(const char* op, std::vector<ArgumentType> arguments) {
  return infer_types(find_op(op), arguments);
}

TEST(OpTable, NamesAreDistinctAndFound) {
  std::set<std::string> names;
  for (size_t i = 0; i < op_table().size(); ++i) {
    names.insert(op_table()[i].name);
    EXPECT_EQ(find_op(op_table()[i].name), static_cast<int>(i));
  }
  EXPECT_EQ(names.size(), op_table().size());
  EXPECT_THROW(find_op("no such"), ExecutionError);
}

TEST(OpTable, EveryAcceptedDTypeHasAKernel) {
  for (size_t i = 0; i < op_table().size(); ++i) {
    for (int d = 0; d < kDTypeCount; ++d) {
      const auto dtype = static_cast<DType>(d);
      if (!accepts(op_table()[i], dtype)) continue;
      EXPECT_NE(block_table().op(static_cast<int>(i), compute_dtype(dtype)), nullptr)
          << op_table()[i].name << " of " << dtype;
    }
  }
}

TEST(OpTable, ResultsFollowTheRule) {
  EXPECT_EQ(infer("add", {{DType::kInt8}, {DType::kUInt8}}).result, DType::kInt16);
  EXPECT_EQ(infer("divide", {{DType::kInt32}, {DType::kInt32}}).result, DType::kFloat64);
  EXPECT_EQ(infer("exp", {{DType::kFloat16}}).result, DType::kFloat16);
  EXPECT_EQ(infer("less", {{DType::kInt8}, {DType::kFloat32}}).result, DType::kBool);
  EXPECT_EQ(infer("abs", {{DType::kComplex64}}).result, DType::kFloat32);
  const OpTypes select = infer("where", {{DType::kFloat32}, {DType::kInt8}, {DType::kInt16}});
  EXPECT_EQ(select.result, DType::kInt16);
}

TEST(OpTable, NumbersFollowTensors) {
  const Scalar integer = 3, real = 0.5, complex = std::complex<double>(0, 1);
  EXPECT_EQ(infer("add", {{DType::kFloat32}, {DType::kBool, &real}}).result, DType::kFloat32);
  EXPECT_EQ(infer("add", {{DType::kInt8}, {DType::kBool, &integer}}).result, DType::kInt8);
  EXPECT_EQ(infer("add", {{DType::kInt8}, {DType::kBool, &real}}).result, DType::kFloat64);
  EXPECT_EQ(infer("add", {{DType::kFloat32}, {DType::kBool, &complex}}).result, DType::kComplex64);
  EXPECT_EQ(infer("add", {{DType::kBool, &integer}, {DType::kBool, &real}}).result,
            DType::kFloat64);
}

TEST(OpTable, NumbersThatDoNotFitAreRefusedOrCompared) {
  const Scalar big = 300, negative = -1;
  EXPECT_THROW(infer("add", {{DType::kUInt8}, {DType::kBool, &big}}), DTypeError);
  EXPECT_THROW(infer("add", {{DType::kUInt64}, {DType::kBool, &negative}}), DTypeError);
  EXPECT_EQ(infer("less", {{DType::kUInt8}, {DType::kBool, &big}}).compute, DType::kInt64);
  EXPECT_EQ(infer("less", {{DType::kUInt64}, {DType::kBool, &negative}}).compute, DType::kFloat64);
}

TEST(OpTable, UnsupportedDTypesAndCountsAreRefused) {
  EXPECT_THROW(infer("subtract", {{DType::kBool}, {DType::kBool}}), DTypeError);
  EXPECT_THROW(infer("bitwise_and", {{DType::kFloat32}, {DType::kInt8}}), DTypeError);
  EXPECT_THROW(infer("less", {{DType::kComplex64}, {DType::kInt8}}), DTypeError);
  EXPECT_THROW(infer("nextafter", {{DType::kFloat16}, {DType::kFloat16}}), DTypeError);
  EXPECT_THROW(infer("add", {{DType::kFloat32}}), ExecutionError);
}

Expr scaled(DType dtype, int code) {
  Expr expr;
  const int x = expr.add_leaf(dtype), k = expr.add_parameter(dtype);
  expr.add_output(expr.add_op(code, {dtype, dtype}, std::vector<int>{x, k}));
  return expr;
}

TEST(Expr, StructuralKeyTellsStructuresApart) {
  const Expr a = scaled(DType::kFloat32, op_code<fn::Multiply>);
  EXPECT_EQ(a.structural_key(), scaled(DType::kFloat32, op_code<fn::Multiply>).structural_key());
  EXPECT_NE(a.structural_key(), scaled(DType::kFloat64, op_code<fn::Multiply>).structural_key());
  EXPECT_NE(a.structural_key(), scaled(DType::kFloat32, op_code<fn::Add>).structural_key());
  Expr two_outputs = scaled(DType::kFloat32, op_code<fn::Multiply>);
  two_outputs.add_output(0);
  EXPECT_NE(a.structural_key(), two_outputs.structural_key());
}

TEST(Expr, StructuralKeyTellsNodesFromOutputs) {
  Expr nodes, outputs;  // one has a parameter, the other its encoding among the outputs
  for (Expr* expr : {&nodes, &outputs}) {
    expr->add_leaf(DType::kBool);
    expr->add_leaf(DType::kBool);
  }
  nodes.add_parameter(DType::kBool);
  nodes.add_output(0);
  for (const int node : {1, 0, 0}) outputs.add_output(node);
  EXPECT_NE(nodes.structural_key(), outputs.structural_key());
}

TEST(Expr, StructuralKeyTellsManyNodesApart) {
  const auto one_of_many = [](int output) {
    Expr expr;
    for (int i = 0; i < 600; ++i) expr.add_leaf(DType::kFloat32);
    expr.add_output(output);
    return expr.structural_key();
  };
  std::set<std::string> keys;
  for (int i = 0; i < 600; ++i) keys.insert(one_of_many(i));
  EXPECT_EQ(keys.size(), 600u);
}

TEST(Expr, ArgumentsAreCastToTheComputeDType) {
  Expr expr;
  const int x = expr.add_leaf(DType::kInt32), y = expr.add_leaf(DType::kFloat64);
  const int sum =
      expr.add_op(op_code<fn::Add>, {DType::kFloat64, DType::kFloat64}, std::vector<int>{x, y});
  EXPECT_EQ(expr.nodes().size(), 4u);
  EXPECT_EQ(expr.node(2).kind, NodeKind::kCast);
  EXPECT_EQ(expr.node(sum).arguments[0], 2);
  EXPECT_EQ(expr.node(sum).arguments[1], y);
}

TEST(Expr, ComplexIsNotCastToReal) {
  Expr expr;
  const int x = expr.add_leaf(DType::kComplex64);
  EXPECT_THROW(expr.add_cast(x, DType::kFloat32), DTypeError);
  EXPECT_EQ(expr.add_cast(x, DType::kComplex64), x);
}

}  // namespace
}  // namespace cuop::jit
