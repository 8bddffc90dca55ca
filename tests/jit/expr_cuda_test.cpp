// What is generated for GPUs, compiled here for three of them: no GPU is needed for that.
#include "cuop/jit/cuda/expr_cuda.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "cuop/core/text.h"
#include "cuop/jit/cuda/kernel_arguments.h"
#include "cuop/jit/cuda/loops.h"
#include "cuop/jit/group.h"
#include "cuop/jit/nvrtc.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"
#include "tests/jit/resources.h"

namespace cuop::jit {
namespace {

using test::next_architectures;
using test::Resources;
using test::resources_of;
using ::testing::HasSubstr;
using ::testing::Not;

/// An expression with tensors to run on; they are on the CPU, as planning does not care.
struct Problem {
  Expr expr;
  Shape shape;
  int reduced = 0;
  std::vector<Tensor> leaves, outputs;
  std::vector<Scalar> parameters;

  explicit Problem(Shape iteration, int reduced_axes = 0)
      : shape(std::move(iteration)), reduced(reduced_axes) {}

  int leaf(const Tensor& tensor) {
    leaves.push_back(tensor);
    return expr.add_leaf(tensor.dtype());
  }
  int leaf(DType dtype) { return leaf(empty(shape, dtype)); }
  int op(const char* name, OpTypes types, std::vector<int> arguments) {
    return expr.add_op(find_op(name), types, arguments);
  }
  void output(int node, const Tensor& tensor) {
    expr.add_output(node);
    outputs.push_back(tensor);
  }
  void output(int node) { output(node, empty(shape, expr.node(node).dtype)); }
  void reduce(ReduceKind kind, int node) {
    const int result = expr.add_reduce(kind, node);
    Shape kept;
    for (int i = 0; i < shape.ndim() - reduced; ++i) kept.push_back(shape[i]);
    output(result, empty(kept, expr.node(result).dtype));
  }

  Bindings bindings() {
    pointers_.clear();
    for (const Tensor& leaf : leaves) pointers_.push_back(&leaf);
    for (const Tensor& output : outputs) pointers_.push_back(&output);
    const std::span<const Tensor* const> all = pointers_;
    return {shape, reduced, all.first(leaves.size()), parameters, all.subspan(leaves.size())};
  }
  Loops loops() { return plan_loops(expr, bindings(), element_cost(expr)); }
  std::string key() {
    std::string text;
    loops().add_key_to(text);
    return text;
  }
  std::string source() { return cuda_source(expr, loops()); }
  /// Dear functions keep tables on the stack.
  bool is_cheap() const { return element_cost(expr) <= 2; }
  int64_t argument_bytes() {
    return static_cast<int64_t>(pack_arguments(expr, bindings(), loops(), {}).bytes.size());
  }

 private:
  std::vector<const Tensor*> pointers_;
};

class CompiledExpr : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!Nvrtc::instance().is_available()) {
      GTEST_SKIP() << "needs NVRTC: " << Nvrtc::instance().reason();
    }
  }
};

/// Compiles it and holds it to its budget; `spilled` in bytes.
void expect_within(const std::string& what, Problem& problem, int registers, int spilled = 0) {
  const CompileRequest request = kernel_request(problem.expr, problem.loops());
  for (const char* arch : next_architectures()) {
    const Resources used = resources_of(request, arch);
    EXPECT_GT(used.registers, 0) << what << " for " << arch;
    EXPECT_LE(used.registers, registers) << what << " for " << arch << "\n" << request.source;
    EXPECT_LE(used.spilled, spilled) << what << " for " << arch;
    // Elements of a thread belong in registers: a stack would mean that a loop was not unrolled.
    if (!problem.loops().is_reduction && problem.is_cheap()) {
      EXPECT_EQ(used.stack, 0) << what << " for " << arch;
    }
  }
}

TEST_F(CompiledExpr, FourFloatsAreOneAccess) {
  Problem p({1 << 20});
  const int a = p.leaf(DType::kFloat32), b = p.leaf(DType::kFloat32);
  p.output(p.op("add", {DType::kFloat32, DType::kFloat32}, {a, b}));
  EXPECT_EQ(p.loops().width, 4);
  EXPECT_FALSE(p.loops().is_wide);
  EXPECT_THAT(p.source(), HasSubstr("load_pack(x0"));
  expect_within("add", p, 32);
}

TEST_F(CompiledExpr, EveryReductionKeepsItsBudget) {
  for (const DType dtype : {DType::kFloat16, DType::kFloat32, DType::kInt64, DType::kComplex128}) {
    for (const bool is_column : {false, true}) {
      Problem p(is_column ? Shape{512, 4096} : Shape{4096, 512}, 1);
      Tensor x = empty({4096, 512}, dtype);
      if (is_column) x = transpose(x);
      const int leaf = p.leaf(x);
      for (const ReduceKind kind : {ReduceKind::kSum, ReduceKind::kProd, ReduceKind::kMax,
                                    ReduceKind::kMin, ReduceKind::kMean, ReduceKind::kArgMax}) {
        if (is_complex(dtype) && kind >= ReduceKind::kMax && kind != ReduceKind::kMean) continue;
        Problem one = p;
        one.reduce(kind, leaf);
        EXPECT_EQ(one.loops().is_column, is_column);
        expect_within(cat(name(kind), ' ', dtype, is_column ? " of columns" : " of rows"), one, 72,
                      16);  // what does not change in the loop
      }
    }
  }
}

TEST_F(CompiledExpr, ReductionsByAThreadEachKeepTheirBudget) {
  for (const DType dtype : {DType::kFloat16, DType::kFloat32, DType::kComplex128}) {
    for (const bool is_column : {false, true}) {
      const Tensor x =
          is_column ? transpose(empty({3, 1 << 19}, dtype)) : empty({1 << 19, 3}, dtype);
      Problem p(x.shape(), 1);
      p.reduce(ReduceKind::kSum, p.leaf(x));
      EXPECT_EQ(p.loops().is_column, is_column);
      EXPECT_EQ(p.loops().team, 1);
      expect_within(cat("short sum ", dtype, is_column ? " of columns" : " of rows"), p, 72, 16);
    }
  }
}

TEST_F(CompiledExpr, ReductionsOfRowsThatBeginAnywhereKeepTheirBudget) {
  for (const DType dtype : {DType::kInt8, DType::kFloat16, DType::kFloat32}) {
    for (const int64_t length : {257, 1023, 8191}) {
      Problem p({4096, length}, 1);
      const int leaf = p.leaf(empty({4096, length}, dtype));
      const int wide = p.expr.add_cast(leaf, DType::kFloat64);
      for (const ReduceKind kind : {ReduceKind::kSum, ReduceKind::kMean, ReduceKind::kMax,
                                    ReduceKind::kArgMin, ReduceKind::kMoments}) {
        Problem one = p;
        one.reduce(kind, kind == ReduceKind::kMoments ? wide : leaf);
        EXPECT_TRUE(one.loops().is_ragged);
        expect_within(cat(name(kind), ' ', dtype, " of rows of ", length), one, 80, 16);
      }
    }
  }
}

TEST_F(CompiledExpr, SquaresAboutTheMeanKeepTheirBudget) {
  for (const DType dtype : {DType::kFloat16, DType::kFloat32, DType::kFloat64, DType::kComplex64}) {
    for (const bool is_column : {false, true}) {
      Problem p(is_column ? Shape{512, 4096} : Shape{4096, 512}, 1);
      Tensor x = empty({4096, 512}, dtype);
      if (is_column) x = transpose(x);
      const DType wide = is_complex(dtype) ? DType::kComplex128 : DType::kFloat64;
      p.reduce(ReduceKind::kMoments, p.expr.add_cast(p.leaf(x), wide));
      EXPECT_EQ(p.loops().is_column, is_column);
      // Loads on the way while the sums are in registers: by columns eight of one element, by rows
      // four of 16 bytes.
      if (is_column) {
        EXPECT_THAT(p.source(), HasSubstr("8, true, 8>(a"));
      } else {
        EXPECT_EQ(p.loops().width, 16 / itemsize(dtype)) << dtype;
      }
      expect_within(cat("squares ", dtype, is_column ? " of columns" : " of rows"), p, 80, 16);
    }
  }
}

TEST_F(CompiledExpr, ALongChainKeepsItsBudget) {
  const OpTypes f{DType::kFloat32, DType::kFloat32};
  Problem p({64, 4096});
  std::vector<int> leaves;
  for (int i = 0; i < 16; ++i) leaves.push_back(p.leaf(DType::kFloat32));
  int value = leaves[0];
  for (int i = 1; i < 64; ++i) {
    value = p.op(i % 3 == 0 ? "multiply" : "add", f, {value, leaves[static_cast<size_t>(i) % 16]});
    if (i % 16 == 0) p.output(value);
  }
  p.output(value);
  expect_within("64 operations", p, 255);
}

/// The largest group that fusion makes on a GPU: as many inputs, operations and held values as
/// there may be, all of them needed until the end.
Problem largest_group(DType dtype, const std::vector<const char*>& ops) {
  const OpTypes types{dtype, dtype};
  Problem p({64, 4096});
  std::vector<int> leaves, values;
  for (int i = 0; i < Group::kMaxInputs; ++i) leaves.push_back(p.leaf(dtype));
  values = leaves;
  values.resize(kMaxGpuOutputs);
  for (size_t i = 0; i < static_cast<size_t>(Group::kMaxOps); ++i) {
    int& value = values[i % values.size()];
    value = p.op(ops[i % ops.size()], types,
                 {value, leaves[(i * 5 + i / values.size()) % leaves.size()]});
  }
  for (const int value : values) p.output(value);
  return p;
}

TEST_F(CompiledExpr, TheLargestGroupsKeepTheirBudget) {
  for (const DType dtype :
       {DType::kFloat32, DType::kFloat64, DType::kComplex64, DType::kComplex128}) {
    Problem p = largest_group(dtype, {"multiply", "add", "subtract", "divide", "multiply"});
    expect_within(cat("the largest group of ", dtype), p, 255);
  }
}

/// All operations of one dtype, so many at a time that one compilation checks several.
class CompiledOps : public CompiledExpr, public ::testing::WithParamInterface<int> {};

TEST_P(CompiledOps, KeepTheirBudgets) {
  const auto dtype = static_cast<DType>(GetParam());
  constexpr int kAtATime = 12;
  std::vector<Problem> problems;
  int in_last = kAtATime;
  for (size_t code = 0; code < op_table().size(); ++code) {
    const OpInfo& op = op_table()[code];
    if (!accepts(op, dtype)) continue;
    if (in_last == kAtATime) {
      problems.emplace_back(Shape{4096});
      in_last = 0;
    }
    ++in_last;
    Problem& p = problems.back();
    std::vector<int> arguments;
    for (int i = 0; i < op.arity; ++i) {
      const bool is_condition = op.rule == Rule::kSelect && i == 0;
      arguments.push_back(p.leaf(is_condition ? DType::kBool : dtype));
    }
    DType result = dtype;
    if (op.rule == Rule::kBool) result = DType::kBool;
    if (op.rule == Rule::kReal) result = real_dtype(dtype);
    p.output(p.expr.add_op(static_cast<int>(code), {dtype, result}, arguments));
  }
  ASSERT_FALSE(problems.empty());
  for (Problem& p : problems) expect_within(kernel_title(p.expr), p, 255);
}

INSTANTIATE_TEST_SUITE_P(Dtypes, CompiledOps, ::testing::Range(0, kDTypeCount),
                         [](const auto& instance) {
                           return name(static_cast<DType>(instance.param));
                         });

TEST_F(CompiledExpr, EveryConversion) {
  for (int from = 0; from < kDTypeCount; ++from) {
    Problem p({4096});
    const int leaf = p.leaf(static_cast<DType>(from));
    for (int to = 0; to < kDTypeCount; ++to) {
      const auto source = static_cast<DType>(from), target = static_cast<DType>(to);
      if (is_complex(source) && !is_complex(target) && !is_bool(target)) continue;
      p.output(p.expr.add_cast(leaf, target));
    }
    expect_within(cat("casts from ", static_cast<DType>(from)), p, 128);
  }
}

// --- planning ------------------------------------------------------------------------------------

Problem binary(const Tensor& a, const Tensor& b, const Tensor& out) {
  Problem p(out.shape());
  const int x = p.leaf(a), y = p.leaf(b);
  p.output(p.op("add", {a.dtype(), a.dtype()}, {x, y}), out);
  return p;
}

TEST(Loops, ContiguousTensorsAreOneAxis) {
  Problem p = binary(empty({3, 5, 8}), empty({3, 5, 8}), empty({3, 5, 8}));
  const Loops loops = p.loops();
  EXPECT_EQ(loops.axes, 1);
  EXPECT_EQ(loops.sizes[0], 120);
  EXPECT_EQ(loops.width, 4);
  EXPECT_FALSE(loops.has_tail);
  EXPECT_EQ(loops.walkers[0].pattern, "v");
}

TEST(Loops, TheKernelDependsOnTheStructureAlone) {
  Problem a = binary(empty({64, 96}), empty({96}), empty({64, 96}));
  Problem b = binary(empty({32, 1024}), empty({1024}), empty({32, 1024}));
  EXPECT_EQ(a.key(), b.key());
  EXPECT_EQ(a.source(), b.source());
  Problem c = binary(empty({64, 97}), empty({97}), empty({64, 97}));  // no four at a time
  EXPECT_NE(a.key(), c.key());
  Problem d = binary(empty({64, 96}), empty({64, 1}), empty({64, 96}));
  EXPECT_NE(a.key(), d.key());
}

TEST(Loops, WidthFollowsAlignmentAndSize) {
  const Tensor whole = empty({4096});
  const auto from = [&](int64_t start, int64_t count) {
    return slice(whole, 0, start, start + count);
  };
  EXPECT_EQ(binary(from(0, 1000), from(1024, 1000), from(2048, 1000)).loops().width, 4);
  EXPECT_EQ(binary(from(2, 1000), from(1024, 1000), from(2048, 1000)).loops().width, 2);
  EXPECT_EQ(binary(from(1, 1000), from(1024, 1000), from(2048, 1000)).loops().width, 1);
  const Loops odd = binary(from(0, 1001), from(1024, 1001), from(2048, 1001)).loops();
  EXPECT_EQ(odd.width, 4);
  EXPECT_TRUE(odd.has_tail);
  const DType half = DType::kFloat16, wide = DType::kComplex128;
  EXPECT_EQ(binary(empty({64}, half), empty({64}, half), empty({64}, half)).loops().width, 8);
  EXPECT_EQ(binary(empty({64}, wide), empty({64}, wide), empty({64}, wide)).loops().width, 1);
}

TEST(Loops, StridedAccessesNeverReachBeyondTheEnd) {
  const Tensor whole = empty({4096});
  const auto every_second = [&](int64_t count) { return slice(whole, 0, 0, 2 * count, 2); };
  for (const int64_t count : {85, 1001, 1024}) {
    for (const bool is_output : {false, true}) {
      const Tensor plain = empty({count}), strided = every_second(count);
      const Loops loops =
          binary(plain, is_output ? plain : strided, is_output ? strided : plain).loops();
      EXPECT_FALSE(loops.has_tail) << count;
      EXPECT_EQ(count % loops.width, 0) << count;
    }
  }
}

TEST(Loops, WhatIsReadOnceAThreadDoesNotNarrowAccesses) {
  const Tensor x = empty({8, 1024}), of_rows = empty({8, 1}, DType::kFloat64);
  Problem p(x.shape());
  const int wide = p.expr.add_cast(p.leaf(x), DType::kFloat64), each = p.leaf(of_rows);
  p.output(p.expr.add_cast(p.op("add", {DType::kFloat64, DType::kFloat64}, {wide, each}),
                           DType::kFloat32));
  EXPECT_EQ(p.loops().width, 4);
}

TEST(Loops, IndicesAre64BitOnlyWhereTheyMustBe) {
  const Tensor small = empty({1});
  const int64_t large = int64_t{1} << 32;
  const auto seen_as = [&](Shape shape, Strides strides) {
    return small.with_layout({std::move(shape), std::move(strides), 0});
  };
  EXPECT_TRUE(
      binary(seen_as({large}, {0}), seen_as({large}, {0}), seen_as({large}, {1})).loops().is_wide);
  EXPECT_TRUE(binary(seen_as({4}, {large}), seen_as({4}, {1}), seen_as({4}, {1})).loops().is_wide);
  EXPECT_FALSE(binary(seen_as({1 << 20}, {100}), seen_as({1 << 20}, {1}), seen_as({1 << 20}, {1}))
                   .loops()
                   .is_wide);
}

TEST(Loops, RowsAndColumnsOfReductions) {
  const auto direction = [](const Tensor& x, int reduced) {
    Problem p(x.shape(), reduced);
    p.reduce(ReduceKind::kSum, p.leaf(x));
    return p.loops();
  };
  EXPECT_FALSE(direction(empty({100, 300}), 1).is_column);
  EXPECT_TRUE(direction(transpose(empty({300, 100})), 1).is_column);
  const Loops all = direction(empty({10, 20, 30}), 3);
  EXPECT_EQ(all.kept, 0);
  EXPECT_EQ(all.axes, 1);
  EXPECT_EQ(all.team, 256);
  EXPECT_EQ(all.reduced_size(), 6000);
  EXPECT_EQ(direction(empty({1000, 2}), 1).team, 1);
}

TEST(Loops, ManyShortRowsAndColumnsAreAThreadEach) {
  const auto team = [](const Shape& shape, DType dtype, bool is_column = false) {
    const Tensor x = empty(shape, dtype);
    const Tensor rows = is_column ? transpose(x) : x;
    Problem p(rows.shape(), 1);
    p.reduce(ReduceKind::kSum, p.leaf(rows));
    EXPECT_EQ(p.loops().is_column, is_column);
    return p.loops().team;
  };
  EXPECT_EQ(team({40000, 3}, DType::kFloat64), 1);
  EXPECT_EQ(team({40000, 31}, DType::kFloat16), 1);
  EXPECT_EQ(team({40000, 95}, DType::kInt8), 1);
  EXPECT_EQ(team({20000, 3}, DType::kFloat64), 4);   // too few to keep a device busy
  EXPECT_EQ(team({40000, 13}, DType::kFloat64), 4);  // of more than 96 bytes
  EXPECT_EQ(team({40000, 31}, DType::kFloat32), 8);
  EXPECT_EQ(team({40000, 33}, DType::kFloat32), 16);
  EXPECT_EQ(team({40000, 97}, DType::kInt8), 32);
  EXPECT_EQ(team({40000, 255}, DType::kInt8), 32);
  EXPECT_EQ(team({8000, 257}, DType::kFloat64), 256);
  EXPECT_EQ(team({40000, 257}, DType::kFloat64), 32);  // a warp each keeps a device busy
  EXPECT_EQ(team({40000, 257}, DType::kInt8), 4);      // 16 accesses of 16 bytes, beside their ends
  EXPECT_EQ(team({7, 800000}, DType::kFloat32, true), 1);
  EXPECT_EQ(team({48, 800000}, DType::kFloat32, true), 1);
  EXPECT_EQ(team({32, 800000}, DType::kFloat32, true), 8);  // which eight threads load at once
  EXPECT_EQ(team({64, 800000}, DType::kFloat32, true), 8);
  EXPECT_EQ(team({7, 400000}, DType::kFloat32, true), 8);  // 100000 threads
}

TEST(Loops, ColumnsAreReadBySeveralWhereThatLeavesNoThreadIdle) {
  const auto loops = [](const Shape& shape, DType dtype, ReduceKind kind = ReduceKind::kSum) {
    Problem p({shape[1], shape[0]}, 1);
    p.reduce(kind, p.leaf(transpose(empty(shape, dtype))));
    return p.loops();
  };
  const Loops wide = loops({50, 640}, DType::kFloat32);
  EXPECT_TRUE(wide.is_column);
  EXPECT_EQ(wide.width, 4);
  EXPECT_EQ(wide.inner(), 0);
  EXPECT_EQ(wide.rows(), 160);
  EXPECT_EQ(wide.steps(), 50);
  EXPECT_EQ(loops({50, 642}, DType::kFloat32).width, 2);  // no multiple of 4
  EXPECT_EQ(loops({50, 96}, DType::kFloat32).width, 2);   // fewer than 32 times 4
  EXPECT_EQ(loops({50, 640}, DType::kFloat16).width, 4);  // whose sums are doubles
  EXPECT_EQ(loops({50, 640}, DType::kUInt8).width, 16);
  EXPECT_EQ(loops({50, 640}, DType::kFloat32, ReduceKind::kArgMax).width, 2);
  EXPECT_EQ(loops({50, 640}, DType::kComplex128).width, 1);
}

TEST(Loops, RowsThatBeginAnywhereHaveWholeAccessesBetweenTheirEnds) {
  const auto of = [](const Tensor& x, std::optional<Tensor> y = {}) {
    Problem p(x.shape(), 1);
    int node = p.leaf(x);
    if (y) node = p.op("multiply", {x.dtype(), x.dtype()}, {node, p.leaf(*y)});
    p.reduce(ReduceKind::kSum, node);
    return p.loops();
  };
  const auto rows = [](int64_t length, DType dtype) { return empty({40, length}, dtype); };
  const auto behind = [](const Tensor& x, int64_t first) { return slice(x, 1, first, x.shape(1)); };
  const DType half = DType::kFloat16, single = DType::kFloat32;
  const Loops odd = of(rows(1023, single));
  EXPECT_TRUE(odd.is_ragged);
  EXPECT_FALSE(odd.has_tail);
  EXPECT_EQ(odd.width, 4);
  EXPECT_EQ(odd.steps(), 255);
  EXPECT_EQ(odd.row_length(), 1023);
  EXPECT_EQ(of(rows(1022, half)).width, 8);
  EXPECT_EQ(of(rows(1023, DType::kInt8)).width, 16);
  EXPECT_TRUE(of(behind(rows(1024, single), 1)).is_ragged);
  // Accesses of 8 bytes are long enough, and few of 16 are not worth their ends.
  for (const Loops& even : {of(rows(1022, single)), of(rows(1023, DType::kFloat64)),
                            of(rows(1024, single)), of(rows(1020, half)), of(rows(63, single)),
                            of(behind(rows(1024, single), 2)), of(transpose(rows(1023, single)))}) {
    EXPECT_FALSE(even.is_ragged) << even.width;
  }
  // All tensors begin at the same place of an access in every row, or none has any.
  const Tensor x = rows(1023, single), row = empty({1023}, single), each = empty({40, 1}, single);
  EXPECT_TRUE(of(x, rows(1023, single)).is_ragged);
  EXPECT_TRUE(of(x, each).is_ragged);
  EXPECT_EQ(of(x, row).width, 1);
  EXPECT_EQ(of(x, behind(rows(1024, single), 1)).width, 1);
  EXPECT_TRUE(of(behind(rows(1024, single), 1), behind(rows(1024, single), 1)).is_ragged);
  EXPECT_EQ(of(behind(rows(1024, single), 1), behind(rows(1025, single), 2)).width, 1);
  EXPECT_EQ(of(x, transpose(empty({1023, 40}, single))).width, 1);
}

TEST(ExprCuda, NumbersAndShapesAreArguments) {
  Problem p({128});
  const int x = p.leaf(DType::kFloat32);
  const int number = p.expr.add_parameter(DType::kFloat32);
  p.parameters.emplace_back(41.5);
  p.output(p.op("multiply", {DType::kFloat32, DType::kFloat32}, {x, number}));
  EXPECT_THAT(p.source(), Not(HasSubstr("41.5")));
  EXPECT_THAT(p.source(), Not(HasSubstr("128")));
  // count, two pointers, the number: 4 + 4 of padding + 8 + 8 + 4 + 4 of padding.
  EXPECT_EQ(p.argument_bytes(), 32);
  EXPECT_EQ(kernel_title(p.expr), "multiply");
}

TEST(ExprCuda, WhatNoOutputNeedsIsNotComputed) {
  Problem p({128});
  const OpTypes f{DType::kFloat32, DType::kFloat32};
  const int x = p.leaf(DType::kFloat32), unused = p.leaf(DType::kFloat32);
  p.op("exp", f, {unused});
  p.output(p.op("negative", f, {x}));
  EXPECT_THAT(p.source(), Not(HasSubstr("Exp")));
  EXPECT_THAT(p.source(), Not(HasSubstr("x1")));
}

}  // namespace
}  // namespace cuop::jit
