// A fused expression op by op: every step runs on the CPU here, where the expression as a whole
// gives the same bits.
#include "cuop/jit/cuda/steps.h"

#include <gtest/gtest.h>

#include <cstring>

#include "cuop/core/text.h"
#include "cuop/jit/cpu/block_kernels.h"
#include "cuop/jit/kernels/op_list.h"
#include "cuop/jit/run.h"
#include "cuop/ops/create/create.h"

namespace cuop::jit {
namespace {

constexpr DType kFloat = DType::kFloat32;

template <class F>
int add(Expr& expr, std::vector<int> arguments) {
  return expr.add_op(op_code<F>, {kFloat, kFloat}, arguments);
}

bool on_cpu(const Expr& expr, const Bindings& bindings) {
  run_cpu(expr, bindings, block_table());
  return true;
}

/// x * 2 + y, its square root's product with itself and y, and an integer of it.
struct Chain {
  Expr expr;
  Tensor x = arange(0, 12, 1, kFloat), y = full({1}, 3.0, kFloat);
  Tensor sum = empty({12}, kFloat), product = empty({12}, kFloat),
         whole = empty({12}, DType::kInt32);
  Scalar two = 2.0;

  Chain() {
    const int a = expr.add_leaf(kFloat), b = expr.add_leaf(kFloat), k = expr.add_parameter(kFloat);
    const int total = add<fn::Add>(expr, {add<fn::Multiply>(expr, {a, k}), b});
    const int root = add<fn::Sqrt>(expr, {total});
    add<fn::Exp>(expr, {root});  // nobody needs it
    expr.add_output(total);
    expr.add_output(add<fn::Multiply>(expr, {add<fn::Multiply>(expr, {root, root}), b}));
    expr.add_output(expr.add_cast(total, DType::kInt32));
  }
  template <class Run>
  auto with(Run&& run) const {
    const Tensor* const leaves[] = {&x, &y};
    const Tensor* const outputs[] = {&sum, &product, &whole};
    return run(Bindings{{12}, 0, leaves, {&two, 1}, outputs});
  }
};

template <class T>
void expect_same_bits(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(std::memcmp(a.data<T>(), b.data<T>(), static_cast<size_t>(a.nbytes())), 0);
}

TEST(Steps, GiveWhatTheWholeGives) {
  const Chain whole, steps;
  whole.with([&](const Bindings& b) { return on_cpu(whole.expr, b); });
  std::vector<std::string> titles;
  ASSERT_TRUE(steps.with([&](const Bindings& b) {
    return run_in_steps(steps.expr, b, [&](const Expr& step, const Bindings& own) {
      EXPECT_EQ(step.outputs().size(), 1u);
      titles.push_back(cat(own.leaves.size(), " leaves, ", own.parameters.size(), " numbers"));
      return on_cpu(step, own);
    });
  }));
  EXPECT_EQ(titles, (std::vector<std::string>{"1 leaves, 1 numbers", "2 leaves, 0 numbers",
                                              "1 leaves, 0 numbers", "2 leaves, 0 numbers",
                                              "2 leaves, 0 numbers", "1 leaves, 0 numbers"}));
  expect_same_bits<float>(whole.sum, steps.sum);
  expect_same_bits<float>(whole.product, steps.product);
  expect_same_bits<int32_t>(whole.whole, steps.whole);
  EXPECT_EQ(steps.sum.data<float>()[5], 13.0F);
}

TEST(Steps, EndWithTheFirstThatCannotRun) {
  const Chain chain;
  int asked = 0;
  EXPECT_FALSE(chain.with([&](const Bindings& b) {
    return run_in_steps(chain.expr, b, [&](const Expr& step, const Bindings& own) {
      return ++asked < 3 && on_cpu(step, own);
    });
  }));
  EXPECT_EQ(asked, 3);
}

TEST(Steps, AreForSeveralOperationsThatWriteNothingTheyRead) {
  const Chain chain;
  EXPECT_TRUE(chain.with([&](const Bindings& b) { return can_run_in_steps(chain.expr, b); }));
  const Tensor* const leaves[] = {&chain.x, &chain.y};
  const Tensor* const in_place[] = {&chain.x, &chain.product, &chain.whole};
  EXPECT_FALSE(can_run_in_steps(chain.expr, {{12}, 0, leaves, {&chain.two, 1}, in_place}));

  Expr one, reduced;
  one.add_output(add<fn::Exp>(one, {one.add_leaf(kFloat)}));
  const Tensor* const output = &chain.sum;
  EXPECT_FALSE(can_run_in_steps(one, {{12}, 0, {leaves, 1}, {}, {&output, 1}}));
  const int leaf = reduced.add_leaf(kFloat);
  const int twice = add<fn::Exp>(reduced, {add<fn::Exp>(reduced, {leaf})});
  reduced.add_output(reduced.add_reduce(ReduceKind::kSum, twice));
  const Tensor total = empty({}, kFloat);
  const Tensor* const result = &total;
  EXPECT_FALSE(can_run_in_steps(reduced, {{12}, 1, {leaves, 1}, {}, {&result, 1}}));
}

}  // namespace
}  // namespace cuop::jit
