// The interpreter against a plain evaluation of the same expression, at every instruction set that
// this machine runs.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "cuop/backend/execution.h"
#include "cuop/jit/cpu/program.h"
#include "cuop/jit/fusion.h"
#include "cuop/jit/kernels/op_list.h"
#include "cuop/jit/run.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/index/view.h"
#include "tests/jit/levels.h"

namespace cuop::jit {
namespace {

Tensor random_floats(const Shape& shape, unsigned seed) {
  Tensor tensor = empty(shape, DType::kFloat32, kCpu);
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(-3.0f, 3.0f);
  for (int64_t i = 0; i < tensor.size(); ++i) tensor.data<float>()[i] = uniform(generator);
  return tensor;
}

template <class F>
int add(Expr& expr, DType dtype, std::vector<int> arguments) {
  return expr.add_op(op_code<F>, {dtype, dtype}, arguments);
}

/// exp(a * 1.5 + b) - a, and its running value a * 1.5 + b.
Expr chain() {
  Expr expr;
  const int a = expr.add_leaf(DType::kFloat32), b = expr.add_leaf(DType::kFloat32);
  const int k = expr.add_parameter(DType::kFloat32);
  const int scaled = add<fn::Multiply>(expr, DType::kFloat32, {a, k});
  const int sum = add<fn::Add>(expr, DType::kFloat32, {scaled, b});
  const int power = add<fn::Exp>(expr, DType::kFloat32, {sum});
  expr.add_output(add<fn::Subtract>(expr, DType::kFloat32, {power, a}));
  expr.add_output(sum);
  return expr;
}

class Interpreter : public testing::TestWithParam<isa::Level> {
 protected:
  const BlockTable& table() const { return block_table(GetParam()); }
};

TEST_P(Interpreter, DeferredLeavesAreComputedBeforeTheyAreRead) {
  const Expr expr = chain();
  const Scalar number = 1.5;
  const int64_t n = 3000;
  const Tensor a = random_floats({n}, 1), c = random_floats({n}, 2);
  const auto run = [&](const Tensor& b) {
    const Tensor result = empty({n}, DType::kFloat32, kCpu),
                 sum = empty({n}, DType::kFloat32, kCpu);
    const Tensor* leaves[] = {&a, &b};
    const Tensor* outputs[] = {&result, &sum};
    run_cpu(expr, {{n}, 0, leaves, {&number, 1}, outputs}, table());
    return result;
  };
  const Tensor expected = run(c * c);
  const Fused scope;
  const Tensor deferred = c * c;  // computed by the interpreter too, on this thread
  ASSERT_TRUE(deferred.storage()->is_deferred());
  const Tensor result = run(deferred);
  for (int64_t i = 0; i < n; ++i) {
    ASSERT_EQ(result.data<float>()[i], expected.data<float>()[i]) << i;
  }
}

TEST_P(Interpreter, ChainMatchesDoubleEvaluationForAwkwardSizes) {
  const Expr expr = chain();
  const Scalar number = 1.5;
  for (const int64_t n : {1, 2, 15, 16, 17, 31, 1000, 2047, 2048, 2049, 10007, 300001}) {
    const Tensor a = random_floats({n}, 1), b = random_floats({n}, 2);
    const Tensor result = empty({n}, DType::kFloat32, kCpu),
                 sum = empty({n}, DType::kFloat32, kCpu);
    const Tensor* leaves[] = {&a, &b};
    const Tensor* outputs[] = {&result, &sum};
    run_cpu(expr, {{n}, 0, leaves, {&number, 1}, outputs}, table());
    for (int64_t i = 0; i < n; ++i) {
      const double x = a.data<float>()[i], s = x * 1.5 + double(b.data<float>()[i]);
      ASSERT_NEAR(sum.data<float>()[i], s, 2e-6 * 8) << n << " at " << i;
      ASSERT_NEAR(result.data<float>()[i], std::exp(s) - x, 2e-5 * (1 + std::exp(s)))
          << n << " at " << i;
    }
  }
}

TEST_P(Interpreter, AValueDoesNotDependOnItsPlace) {
  Expr expr;
  const int x = expr.add_leaf(DType::kFloat32);
  expr.add_output(add<fn::Tanh>(expr, DType::kFloat32, {x}));
  const Tensor whole = random_floats({5003}, 7);
  const Tensor expected = empty({5003}, DType::kFloat32, kCpu);
  const Tensor *leaf = &whole, *out = &expected;
  run_cpu(expr, {{5003}, 0, {&leaf, 1}, {}, {&out, 1}}, table());
  for (const int64_t start : {1, 3, 17, 4999, 5002}) {
    const int64_t length = 5003 - start;
    const Tensor part = whole.with_layout(slice(whole.layout(), 0, start, length, 1));
    const Tensor result = empty({length}, DType::kFloat32, kCpu);
    const Tensor *part_leaf = &part, *part_out = &result;
    run_cpu(expr, {{length}, 0, {&part_leaf, 1}, {}, {&part_out, 1}}, table());
    for (int64_t i = 0; i < length; ++i) {
      ASSERT_EQ(result.data<float>()[i], expected.data<float>()[start + i]) << start << "+" << i;
    }
  }
}

TEST_P(Interpreter, BroadcastAndStridedLeaves) {
  Expr expr;
  const int a = expr.add_leaf(DType::kFloat32), row = expr.add_leaf(DType::kFloat32),
            column = expr.add_leaf(DType::kFloat32), one = expr.add_leaf(DType::kFloat32);
  int sum = add<fn::Add>(expr, DType::kFloat32, {a, row});
  sum = add<fn::Add>(expr, DType::kFloat32, {sum, column});
  expr.add_output(add<fn::Multiply>(expr, DType::kFloat32, {sum, one}));
  const int64_t rows = 37, columns = 101;
  const Tensor stored = random_floats({columns, rows}, 1);
  const Tensor transposed =
      stored.with_layout(permute(stored.layout(), std::vector<int64_t>{1, 0}));
  const Tensor r = random_floats({columns}, 2), c = random_floats({rows, 1}, 3),
               s = random_floats({1, 1}, 4);
  const Tensor result = empty({rows, columns}, DType::kFloat32, kCpu);
  const Tensor *leaves[] = {&transposed, &r, &c, &s}, *out = &result;
  run_cpu(expr, {{rows, columns}, 0, leaves, {}, {&out, 1}}, table());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      const float expected =
          ((stored.data<float>()[j * rows + i] + r.data<float>()[j]) + c.data<float>()[i]) *
          s.data<float>()[0];
      ASSERT_EQ(result.data<float>()[i * columns + j], expected) << i << "," << j;
    }
  }
}

TEST_P(Interpreter, SixteenBitFloatsRoundAfterEveryStep) {
  Expr expr;
  const int x = expr.add_leaf(DType::kFloat16), y = expr.add_leaf(DType::kFloat16);
  const int product = add<fn::Multiply>(expr, DType::kFloat16, {x, y});
  expr.add_output(add<fn::Add>(expr, DType::kFloat16, {product, x}));
  const Tensor a = empty({100}, DType::kFloat16, kCpu), b = empty({100}, DType::kFloat16, kCpu),
               result = empty({100}, DType::kFloat16, kCpu);
  for (int i = 0; i < 100; ++i) {
    a.data<Half>()[i] = Half(0.37f * static_cast<float>(i - 50));
    b.data<Half>()[i] = Half(1.0f / static_cast<float>(i + 1));
  }
  const Tensor *leaves[] = {&a, &b}, *out = &result;
  run_cpu(expr, {{100}, 0, leaves, {}, {&out, 1}}, table());
  for (int i = 0; i < 100; ++i) {
    const Half rounded(float(a.data<Half>()[i]) * float(b.data<Half>()[i]));
    const Half expected(float(rounded) + float(a.data<Half>()[i]));
    ASSERT_EQ(result.data<Half>()[i].bits, expected.bits) << i;
  }
}

TEST_P(Interpreter, TrailingReductionsOfRowsOfEveryLength) {
  for (const int64_t length : {1, 3, 64, 1000, 2048, 2049, 30000}) {
    for (const int64_t rows : {1, 7}) {
      Expr expr;
      const int x = expr.add_leaf(DType::kFloat32);
      const int square = add<fn::Multiply>(expr, DType::kFloat32, {x, x});
      expr.add_output(expr.add_reduce(ReduceKind::kSum, square));
      expr.add_output(expr.add_reduce(ReduceKind::kMax, square));
      expr.add_output(expr.add_reduce(ReduceKind::kMean, x));
      expr.add_output(square);
      const Tensor a = random_floats({rows, length}, 5);
      const Tensor sum = empty({rows}, DType::kFloat32, kCpu),
                   largest = empty({rows, 1}, DType::kFloat32, kCpu),
                   mean = empty({rows}, DType::kFloat32, kCpu),
                   squares = empty({rows, length}, DType::kFloat32, kCpu);
      const Tensor *leaf = &a, *outputs[] = {&sum, &largest, &mean, &squares};
      run_cpu(expr, {{rows, length}, 1, {&leaf, 1}, {}, outputs}, table());
      for (int64_t row = 0; row < rows; ++row) {
        double total = 0, plain = 0;
        float top = 0;
        for (int64_t i = 0; i < length; ++i) {
          const float value = a.data<float>()[row * length + i];
          ASSERT_EQ(squares.data<float>()[row * length + i], value * value);
          total += double(value) * double(value);
          plain += value;
          top = std::max(top, value * value);
        }
        ASSERT_NEAR(sum.data<float>()[row], total, 1e-6 * total) << length;
        ASSERT_NEAR(mean.data<float>()[row], plain / double(length), 1e-6) << length;
        ASSERT_EQ(largest.data<float>()[row], top) << length;
      }
    }
  }
}

TEST_P(Interpreter, ReductionOfNothingIsItsIdentity) {
  Expr expr;
  const int x = expr.add_leaf(DType::kFloat64);
  expr.add_output(expr.add_reduce(ReduceKind::kSum, x));
  expr.add_output(expr.add_reduce(ReduceKind::kProd, x));
  const Tensor a = empty({3, 0}, DType::kFloat64, kCpu), sum = empty({3}, DType::kFloat64, kCpu),
               product = empty({3}, DType::kFloat64, kCpu);
  const Tensor *leaf = &a, *outputs[] = {&sum, &product};
  run_cpu(expr, {{3, 0}, 1, {&leaf, 1}, {}, outputs}, table());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(sum.data<double>()[i], 0.0);
    EXPECT_EQ(product.data<double>()[i], 1.0);
  }
}

TEST_P(Interpreter, MaximumOfARowKeepsItsNaN) {
  Expr expr;
  expr.add_output(expr.add_reduce(ReduceKind::kMax, expr.add_leaf(DType::kFloat32)));
  for (const int64_t place : {0, 5, 500, 4095}) {
    const Tensor a = random_floats({4096}, 3), largest = empty({}, DType::kFloat32, kCpu);
    a.data<float>()[place] = std::nanf("");
    const Tensor *leaf = &a, *out = &largest;
    run_cpu(expr, {{4096}, 1, {&leaf, 1}, {}, {&out, 1}}, table());
    EXPECT_TRUE(std::isnan(*largest.data<float>())) << place;
  }
}

TEST_P(Interpreter, WhatAReductionReadsStaysUntilTheBlockIsReduced) {
  // The product is the last computation to read the sum, whose register it must not take: the
  // reduction, which nobody sees in the order of computations, comes behind all of them.
  Expr expr;
  const int x = expr.add_leaf(DType::kFloat32), y = expr.add_leaf(DType::kFloat32);
  const int sum = add<fn::Add>(expr, DType::kFloat32, {x, y});
  expr.add_output(expr.add_reduce(ReduceKind::kSum, sum));
  const int product = add<fn::Multiply>(expr, DType::kFloat32, {sum, y});
  expr.add_output(add<fn::Subtract>(expr, DType::kFloat32, {product, x}));
  const Tensor a = full({3000}, 1.0, DType::kFloat32), b = full({3000}, 3.0, DType::kFloat32);
  const Tensor total = empty({}, DType::kFloat32, kCpu),
               results = empty({3000}, DType::kFloat32, kCpu);
  const Tensor *leaves[] = {&a, &b}, *outputs[] = {&total, &results};
  run_cpu(expr, {{3000}, 1, leaves, {}, outputs}, table());
  EXPECT_EQ(*total.data<float>(), 12000.0f);
  for (int i = 0; i < 3000; ++i) ASSERT_EQ(results.data<float>()[i], 11.0f) << i;
}

TEST_P(Interpreter, CastsGoThroughTheTypeTheyName) {
  // float32 -> int32 -> float16 -> float32: each step cuts what its type cannot hold.
  Expr expr;
  const int x = expr.add_leaf(DType::kFloat32);
  const int whole = expr.add_cast(x, DType::kInt32);
  const int half = expr.add_cast(whole, DType::kFloat16);
  const int back = expr.add_cast(half, DType::kFloat32);
  for (const int node : {whole, half, back}) expr.add_output(node);
  const Tensor a = from_values<float>({4}, {2.75f, -2.75f, 2049.5f, -4099.0f});
  const Tensor w = empty({4}, DType::kInt32, kCpu), h = empty({4}, DType::kFloat16, kCpu),
               b = empty({4}, DType::kFloat32, kCpu);
  const Tensor *leaf = &a, *outputs[] = {&w, &h, &b};
  run_cpu(expr, {{4}, 0, {&leaf, 1}, {}, outputs}, table());
  const int32_t integers[] = {2, -2, 2049, -4099};
  const float rounded[] = {2.0f, -2.0f, 2048.0f, -4100.0f};  // float16 has 11 bits
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(w.data<int32_t>()[i], integers[i]);
    EXPECT_EQ(static_cast<float>(h.data<Half>()[i]), rounded[i]);
    EXPECT_EQ(b.data<float>()[i], rounded[i]);
  }
}

TEST_P(Interpreter, OutputsThatAreNotComputedAreCopied) {
  Expr expr;
  const int x = expr.add_leaf(DType::kFloat32), number = expr.add_parameter(DType::kFloat32);
  const int sum = add<fn::Add>(expr, DType::kFloat32, {x, number});
  for (const int node : {x, number, sum, sum}) expr.add_output(node);
  const Tensor a = random_floats({50}, 1);
  std::vector<Tensor> results;
  for (int i = 0; i < 4; ++i) results.push_back(empty({50}, DType::kFloat32, kCpu));
  const Tensor *leaf = &a, *outputs[] = {&results[0], &results[1], &results[2], &results[3]};
  const Scalar two = 2;
  run_cpu(expr, {{50}, 0, {&leaf, 1}, {&two, 1}, outputs}, table());
  for (int i = 0; i < 50; ++i) {
    const float value = a.data<float>()[i];
    EXPECT_EQ(results[0].data<float>()[i], value);
    EXPECT_EQ(results[1].data<float>()[i], 2.0f);
    EXPECT_EQ(results[2].data<float>()[i], value + 2.0f);
    EXPECT_EQ(results[3].data<float>()[i], value + 2.0f);
  }
}

/// Rows longer and shorter than a block, of which some blocks lie in one row.
TEST_P(Interpreter, OneElementForManyIsAsIfItStoodThereForEach) {
  constexpr DType kDtypes[] = {DType::kBool,    DType::kInt8,    DType::kUInt8,
                               DType::kInt32,   DType::kUInt64,  DType::kFloat16,
                               DType::kFloat32, DType::kFloat64, DType::kComplex64};
  const auto ops = op_table();
  for (const DType dtype : kDtypes) {
    const Tensor numbers = cast(random_floats({3 * 40007}, 8), dtype);
    const auto part = [&](Shape shape, int64_t first) {
      Strides strides = contiguous_layout(shape).strides;
      return numbers.with_layout({std::move(shape), std::move(strides), first});
    };
    for (size_t code = 0; code < ops.size(); ++code) {
      const OpInfo& op = ops[code];
      const bool is_known = table().op(static_cast<int>(code), compute_dtype(dtype)) != nullptr;
      if (op.arity < 2 || op.rule == Rule::kSelect || !is_known || !(op.cost < 8)) continue;
      if (op.rule == Rule::kInexact && !is_floating(dtype) && !is_complex(dtype)) continue;
      Expr expr;
      std::vector<int> arguments;
      for (int k = 0; k < op.arity; ++k) arguments.push_back(expr.add_leaf(dtype));
      const DType to = op.rule == Rule::kBool ? DType::kBool : dtype;
      expr.add_output(expr.add_op(static_cast<int>(code), {dtype, to}, arguments));
      for (const Shape& shape : {Shape{3, 40007}, {700, 171}, {5, 7, 33}}) {
        Shape row = shape, column = shape, one = shape;
        for (int axis = 0; axis + 1 < shape.ndim(); ++axis) row[axis] = one[axis] = 1;
        column.back() = one.back() = 1;
        const Tensor all = part(shape, 0);
        for (const Tensor& few : {part(row, 5), part(column, 3), part(one, 9)}) {
          for (int where = 0; where < op.arity; ++where) {
            std::vector<Tensor> given(static_cast<size_t>(op.arity), few);
            given[static_cast<size_t>(where)] = all;
            const auto run = [&](const std::vector<Tensor>& leaves) {
              std::vector<const Tensor*> pointers;
              for (const Tensor& leaf : leaves) pointers.push_back(&leaf);
              const Tensor result = empty(shape, to, kCpu);
              const Tensor* const out = &result;
              run_cpu(expr, {shape, 0, pointers, {}, {&out, 1}}, table());
              return result;
            };
            std::vector<Tensor> whole;
            for (const Tensor& leaf : given) whole.push_back(clone(broadcast_to(leaf, shape)));
            const Tensor got = run(given), expected = run(whole);
            ASSERT_EQ(std::memcmp(got.data(), expected.data(), static_cast<size_t>(got.nbytes())),
                      0)
                << op.name << ' ' << dtype << ' ' << shape << " with " << few.shape() << " beside "
                << where;
          }
        }
      }
    }
  }
}

/// A column of which each block has one element, beside a number and beside one element for all.
TEST_P(Interpreter, ColumnsBesideOneElementForAll) {
  const Tensor numbers = random_floats({3 * 40007}, 9);
  for (const DType dtype : {DType::kInt8, DType::kInt64, DType::kFloat32, DType::kComplex128}) {
    const Tensor values = cast(numbers, dtype);
    for (const Shape& shape : {Shape{3, 40007}, {4, 5000}, {7, 5, 15}, {2, 3, 4096}}) {
      Shape one = shape;
      one.back() = 1;
      const Tensor few = cast(random_floats(one, 10), dtype);
      const Tensor column = broadcast_to(few, shape), single = full({1}, 3, dtype, kCpu);
      const Tensor for_all = broadcast_to(single, shape);
      Expr expr;
      const int a = expr.add_leaf(dtype), b = expr.add_leaf(dtype);
      const int k = expr.add_parameter(dtype);
      const int beside_leaf = add<fn::Multiply>(expr, dtype, {a, b});
      const int beside_number = add<fn::Subtract>(expr, dtype, {k, a});
      expr.add_output(beside_leaf);
      expr.add_output(beside_number);
      expr.add_output(add<fn::Add>(expr, dtype, {beside_leaf, beside_number}));
      const Scalar number = 2;
      const auto run = [&](const Tensor& x, const Tensor& y) {
        std::vector<Tensor> results(3);
        for (Tensor& result : results) result = empty(shape, dtype, kCpu);
        const Tensor* const leaves[] = {&x, &y};
        const Tensor* const out[] = {&results[0], &results[1], &results[2]};
        run_cpu(expr, {shape, 0, leaves, {&number, 1}, out}, table());
        return results;
      };
      const std::vector<Tensor> got = run(column, for_all);
      const std::vector<Tensor> wanted = run(clone(column), clone(for_all));
      for (size_t i = 0; i < got.size(); ++i) {
        const auto bytes = static_cast<size_t>(got[i].nbytes());
        ASSERT_EQ(std::memcmp(got[i].data(), wanted[i].data(), bytes), 0)
            << dtype << ' ' << shape << " output " << i;
      }
    }
  }
}

template <class T>
void check_numbers_behind(const BlockTable& table) {
  using Limits = std::numeric_limits<T>;
  std::vector<T> values, numbers;
  for (int i = 0; i < 20; ++i) {
    values.push_back(static_cast<T>(Limits::min() + static_cast<T>(i)));
    values.push_back(static_cast<T>(Limits::max() - static_cast<T>(i)));
    values.push_back(static_cast<T>(i));
    values.push_back(static_cast<T>(0 - i));
  }
  numbers = values;
  for (int bit = 0; bit < static_cast<int>(8 * sizeof(T)); ++bit) {
    numbers.push_back(static_cast<T>(uint64_t{1} << bit));
    numbers.push_back(static_cast<T>((uint64_t{1} << bit) + 1));
    numbers.push_back(static_cast<T>(0 - (uint64_t{1} << bit) - 1));
  }
  std::mt19937_64 generator(3);
  for (int i = 0; i < 400; ++i) values.push_back(static_cast<T>(generator() >> (i % 64)));
  const auto check = [&]<class F>(const F*) {
    const ScalarKernels& kernels = table.scalar_op(op_code<F>, dtype_of<T>);
    ASSERT_NE(kernels.behind, nullptr);
    std::vector<T> got(values.size());
    for (const T number : numbers) {
      kernels.behind(got.data(), values.data(), &number, nullptr,
                     static_cast<int64_t>(values.size()));
      for (size_t i = 0; i < values.size(); ++i) {
        ASSERT_EQ(got[i], F::apply(values[i], number))
            << F::name << ' ' << dtype_of<T> << ' ' << +values[i] << " by " << +number;
      }
    }
  };
  check(static_cast<const fn::FloorDivide*>(nullptr));
  check(static_cast<const fn::Remainder*>(nullptr));
  check(static_cast<const fn::Power*>(nullptr));
}

TEST_P(Interpreter, QuotientsAndPowersByOneNumber) {
  check_numbers_behind<int8_t>(table());
  check_numbers_behind<uint8_t>(table());
  check_numbers_behind<int16_t>(table());
  check_numbers_behind<uint16_t>(table());
  check_numbers_behind<int32_t>(table());
  check_numbers_behind<uint32_t>(table());
  check_numbers_behind<int64_t>(table());
  check_numbers_behind<uint64_t>(table());
}

INSTANTIATE_TEST_SUITE_P(Levels, Interpreter, testing::ValuesIn(test::levels()),
                         [](const auto& level) { return isa::name(level.param); });

TEST(BlockTable, PlainKernelsAreTheBaseline) {
  const backend::ExecutionScope plain(backend::with_kernel({backend::KernelType::kSimple}));
  EXPECT_EQ(&block_table(), &block_table(isa::Level::kBaseline));
}

TEST(Program, ReusesRegistersOfDeadValues) {
  Expr expr;
  int value = expr.add_leaf(DType::kFloat32);
  for (int i = 0; i < 40; ++i) value = add<fn::Exp>(expr, DType::kFloat32, {value});
  expr.add_output(value);
  Program program;
  compile(expr, block_table(), program);
  EXPECT_EQ(program.code.size(), 40u);
  EXPECT_EQ(program.register_count, 1);
}

TEST(ProgramCache, KeepsTablesAndExpressionsApart) {
  const BlockTable &fast = block_table(), &plain = block_table(isa::Level::kBaseline);
  for (int round = 0; round < 3; ++round) {
    for (int length = 1; length < 60; ++length) {  // more than the cache has places
      Expr expr;
      int value = expr.add_leaf(DType::kFloat32);
      for (int i = 0; i < length; ++i) value = add<fn::Exp>(expr, DType::kFloat32, {value});
      expr.add_output(value);
      EXPECT_EQ(compiled(expr, fast).code.size(), static_cast<size_t>(length));
      EXPECT_EQ(compiled(expr, fast).code[0].kernel, fast.op(op_code<fn::Exp>, DType::kFloat32));
      EXPECT_EQ(compiled(expr, plain).code[0].kernel, plain.op(op_code<fn::Exp>, DType::kFloat32));
      expr.add_output(value);
      EXPECT_EQ(compiled(expr, plain).output_dtypes.size(), 2u);
    }
  }
}

TEST(ProgramCache, ForgetsWhatCouldNotBeCompiled) {
  Expr bad;
  const int reduced = bad.add_reduce(ReduceKind::kSum, bad.add_leaf(DType::kFloat32));
  bad.add_output(reduced);
  bad.add_output(reduced);
  for (int i = 0; i < 2; ++i) EXPECT_THROW(compiled(bad, block_table()), NotImplementedError);
}

TEST(Program, LeavesOutWhatNoOutputNeeds) {
  Expr expr;
  const int x = expr.add_leaf(DType::kFloat32), unused = expr.add_leaf(DType::kFloat32);
  add<fn::Exp>(expr, DType::kFloat32, {unused});
  expr.add_output(add<fn::Sin>(expr, DType::kFloat32, {x}));
  Program program;
  compile(expr, block_table(), program);
  EXPECT_EQ(program.code.size(), 1u);
  EXPECT_FALSE(program.is_leaf_used[1]);
}

}  // namespace
}  // namespace cuop::jit
