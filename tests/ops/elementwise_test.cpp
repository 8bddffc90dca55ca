// The C++ face of elementwise work: operands, operators, outputs and errors. What each operation
// computes is tested row by row against NumPy in python/tests/test_elementwise.py.
#include "cuop/ops/elementwise/elementwise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "cuop/core/error.h"
#include "cuop/jit/op_table.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"
#include "tests/values.h"

namespace cuop {
namespace {

using test::values;

Tensor tensor_of(const std::vector<float>& values) {
  Tensor tensor = empty({static_cast<int64_t>(values.size())}, DType::kFloat32);
  std::copy(values.begin(), values.end(), tensor.data<float>());
  return tensor;
}

using Doubles = std::vector<double>;

TEST(Elementwise, TensorsAndNumbersMixInAnyOrder) {
  const Tensor x = tensor_of({1, 2, 3});
  EXPECT_EQ(values(add(x, x)), (Doubles{2, 4, 6}));
  EXPECT_EQ(values(subtract(10, x)), (Doubles{9, 8, 7}));
  EXPECT_EQ(values(divide(x, 2.0f)), (Doubles{0.5, 1, 1.5}));
  EXPECT_EQ(subtract(10, x).dtype(), DType::kFloat32);
  EXPECT_EQ(add(x, std::complex<double>(0, 1)).dtype(), DType::kComplex64);
  const Tensor both = to_device(add(1, 2), {});
  EXPECT_EQ(both.ndim(), 0);
  EXPECT_EQ(*both.data<int64_t>(), 3);
}

TEST(Elementwise, OperatorsAreTheFunctions) {
  const Tensor x = tensor_of({4, -9, 0.25f}), y = tensor_of({2, 2, 2});
  EXPECT_EQ(values(x + y * 2 - 1), (Doubles{7, -6, 3.25}));
  EXPECT_EQ(values(1 / y), (Doubles{0.5, 0.5, 0.5}));
  EXPECT_EQ(values(x % y), (Doubles{0, 1, 0.25}));
  EXPECT_EQ(values(-x), (Doubles{-4, 9, -0.25}));
  EXPECT_EQ(values((x > 0) & (x < y)), (Doubles{0, 0, 1}));
  EXPECT_EQ(values((x == 4) | (x != -9)), (Doubles{1, 0, 1}));
  EXPECT_EQ(values(~(x >= 0) ^ (x <= 1)), (Doubles{0, 0, 1}));
  Tensor z = clone(x);
  z += 1;
  z -= y;
  z *= 3;
  z /= y;
  EXPECT_EQ(values(z), (Doubles{4.5, -15, -1.125}));
}

TEST(Elementwise, TernaryOperations) {
  const Tensor x = tensor_of({-2, 0.5f, 7});
  EXPECT_EQ(values(clip(x, 0, 1)), (Doubles{0, 0.5, 1}));
  EXPECT_EQ(values(where(x > 0, x, 0)), (Doubles{0, 0.5, 7}));
  EXPECT_EQ(where(x, 1, 2).dtype(), DType::kInt64);
}

TEST(Elementwise, ByNameWithTheCountOfTheRow) {
  const Operand x(-3), y(4);
  const Operand *one[] = {&x}, *two[] = {&x, &y};
  const Tensor distance = to_device(elementwise("abs", one), {});
  EXPECT_EQ(*distance.data<int64_t>(), 3);
  const Tensor product = to_device(elementwise("multiply", two), {});
  EXPECT_EQ(*product.data<int64_t>(), -12);
  EXPECT_THROW(elementwise("abs", two), ExecutionError);
  EXPECT_THROW(elementwise("abc", one), ExecutionError);
}

TEST(Elementwise, EveryRowRunsOnEmptyAndOnScalarTensors) {
  for (const jit::OpInfo& op : jit::op_table()) {
    const DType dtype = jit::argument_dtypes(op).back();
    for (const Shape& shape : {Shape{}, Shape{3, 0}}) {
      const Tensor x = ones(shape, dtype);
      const Operand operand(x);
      const std::vector<const Operand*> list(static_cast<size_t>(op.arity), &operand);
      EXPECT_EQ(elementwise(op.name, list).shape(), shape) << op.name;
    }
  }
}

TEST(Elementwise, OutputMayConvertWithinOrAboveTheResultsKind) {
  const Tensor x = tensor_of({1.5, 2.5});
  const Tensor narrow = empty({2}, DType::kFloat16), wide = empty({2}, DType::kComplex128);
  add(x, 1, &narrow);
  add(x, 1, &wide);
  EXPECT_EQ(values(narrow), (Doubles{2.5, 3.5}));
  EXPECT_EQ(wide.data<std::complex<double>>()[1], std::complex<double>(3.5, 0));
  const Tensor integers = empty({2}, DType::kInt32);
  EXPECT_THROW(add(x, 1, &integers), DTypeError);
  greater(x, 2, &integers);
  EXPECT_EQ(values(integers), (Doubles{0, 1}));
}

TEST(Elementwise, OutputThatOverlapsAnInputIsRefusedUnlessItIsTheInput) {
  const Tensor base = tensor_of({0, 1, 2, 3, 4, 5});
  const Tensor head = slice(base, 0, 0, 5), tail = slice(base, 0, 1, 6);
  EXPECT_THROW(add(head, 1, &tail), ExecutionError);
  add(head, 10, &head);
  EXPECT_EQ(values(base), (Doubles{10, 11, 12, 13, 14, 5}));
  const Tensor reversed = slice(base, 0, std::nullopt, std::nullopt, -1);
  EXPECT_THROW(add(base, reversed, &base), ExecutionError);
}

TEST(Elementwise, StridedOutputsAreWrittenInPlace) {
  const Tensor base = zeros({6, 10});
  const Tensor view = slice(slice(base, 0, 1, 6, 2), 1, 0, 10, 3);
  add(view, 1, &view);
  double total = 0;
  for (const double value : values(base)) total += value;
  EXPECT_EQ(total, 3 * 4);
}

TEST(Elementwise, ErrorsComeBeforeAnyWork) {
  const Tensor x = tensor_of({1, 2, 3}), y = tensor_of({1, 2});
  EXPECT_THROW(x + y, ShapeError);
  EXPECT_THROW(bitwise_and(x, x), DTypeError);
  EXPECT_THROW(add(cast(x, DType::kInt8), 1000), DTypeError);
  EXPECT_THROW(add(Tensor(), x), ExecutionError);
  const Tensor out = empty({2});
  EXPECT_THROW(exp(x, &out), ShapeError);
}

}  // namespace
}  // namespace cuop
