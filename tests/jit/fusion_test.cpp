// Fused scopes: the same values as eager calls, written only where somebody holds them, and cut
// where a hazard or a limit demands it.
#include "cuop/jit/fusion.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/error.h"
#include "cuop/jit/group.h"
#include "cuop/jit/recording.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/reduce/reduce.h"

namespace cuop {
namespace {

Tensor ramp(const Shape& shape, float scale = 0.01f) {
  Tensor tensor = empty(shape, DType::kFloat32, kCpu);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    tensor.data<float>()[i] = scale * static_cast<float>(i % 1009) - 1.0f;
  }
  return tensor;
}

void expect_same(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.shape(), b.shape());
  ASSERT_EQ(a.dtype(), b.dtype());
  const Tensor x = contiguous(a), y = contiguous(b);
  for (int64_t i = 0; i < a.size(); ++i) ASSERT_EQ(x.data<float>()[i], y.data<float>()[i]) << i;
}

bool is_pending(const Tensor& tensor) { return tensor.storage()->is_deferred(); }

class Fusion : public testing::Test {
 protected:
  void SetUp() override { set_kernel_fusion(true); }
  void TearDown() override { set_kernel_fusion(true); }
};

Tensor expression(const Tensor& a, const Tensor& b) {
  return tanh(a * 2 + b) - exp(b) / (a * a + 1);
}

TEST_F(Fusion, FusedEqualsEagerAndIsDeferredUntilTheScopeEnds) {
  const Tensor a = ramp({37, 101}), b = ramp({101}, 0.02f);
  const Tensor expected = expression(a, b);
  Fused scope;
  const Tensor result = expression(a, b);
  EXPECT_TRUE(is_pending(result));
  scope.close();
  EXPECT_FALSE(is_pending(result));
  expect_same(result, expected);
}

TEST_F(Fusion, OneGroupAndOnlyHeldValuesAreWritten) {
  const Tensor a = ramp({5000}), b = ramp({5000}, 0.5f);
  const auto groups = explain([&] { return expression(a, b); });
  ASSERT_EQ(groups.size(), 1u) << to_text(groups);
  EXPECT_EQ(groups[0].inputs, 2);
  EXPECT_EQ(groups[0].outputs, 1);
}

TEST_F(Fusion, ACastThatAChainBeginsWithJoinsIt) {
  const Tensor a = cast(ramp({5000}, 0.5f), DType::kInt8);
  const Tensor b = cast(ramp({5000}), DType::kFloat64);
  const auto chain = [&] { return cast(a, DType::kFloat64) * 3.0 + b; };
  const Tensor expected = chain();
  Tensor result;
  const auto groups = explain([&] { return result = chain(); });
  ASSERT_EQ(groups.size(), 1u) << to_text(groups);
  EXPECT_EQ(groups[0].outputs, 1);
  EXPECT_EQ(groups[0].fused_bytes, a.nbytes() + b.nbytes() + result.nbytes());
  expect_same(cast(result, DType::kFloat32), cast(expected, DType::kFloat32));
}

TEST_F(Fusion, UsingAValueRunsItsGroup) {
  const Tensor a = ramp({100});
  Fused scope;
  const Tensor x = a + 1, y = x * 2;
  EXPECT_TRUE(is_pending(x));
  EXPECT_EQ(y.data<float>()[0], (a.data<float>()[0] + 1) * 2);
  EXPECT_FALSE(is_pending(x));  // it was held, so the same pass wrote it
}

TEST_F(Fusion, AnotherThreadMayUseAValue) {
  const Tensor a = ramp({100000});
  const Tensor expected = exp(a + 1);
  Fused scope;
  const Tensor result = exp(a + 1);
  std::thread other([&] { expect_same(result, expected); });
  other.join();
  EXPECT_FALSE(is_pending(result));
  expect_same(result - 1, expected - 1);
}

TEST_F(Fusion, FunctionsFuseAndScopesNest) {
  const Tensor a = ramp({64});
  const auto inner = fuse([](const Tensor& x) { return x * 3 + 1; });
  expect_same(inner(a), a * 3 + 1);
  Fused scope;
  const Tensor x = inner(a);
  EXPECT_TRUE(is_pending(x));
}

TEST_F(Fusion, WritingAnInputRunsItsReadersFirst) {
  const Tensor a = ramp({300}), before = clone(a);
  Fused scope;
  const Tensor result = a * 2;
  add(a, 100, &a);
  scope.close();
  expect_same(result, before * 2);
  expect_same(a, before + 100);
}

TEST_F(Fusion, CopiesAndFillsWaitForReaders) {
  const Tensor a = ramp({300}), b = ramp({300}, 0.3f), before_a = clone(a), before_b = clone(b);
  Fused scope;
  const Tensor x = a + 1, y = b + 1;
  copy_into(a, zeros({300}));
  fill(b, 7.0);
  scope.close();
  expect_same(x, before_a + 1);
  expect_same(y, before_b + 1);
}

TEST_F(Fusion, WritingAPendingValueInPlace) {
  const Tensor a = ramp({50});
  Fused scope;
  const Tensor x = a + 1;
  const Tensor y = x * 2;
  add(x, 10, &x);
  const Tensor z = x * 2;
  scope.close();
  expect_same(y, (a + 1) * 2);
  expect_same(z, ((a + 1) + 10) * 2);
}

TEST_F(Fusion, ViewsAndBroadcastsOfPendingValues) {
  const Tensor a = ramp({20, 30}), column = ramp({20, 1}, 0.7f);
  const Tensor expected_view = transpose(a + 1) * 2, expected_wide = (column + 1) * a;
  Fused scope;
  const Tensor sum = a + 1;
  const Tensor viewed = transpose(sum) * 2;
  const Tensor wide = (column + 1) * a;
  scope.close();
  expect_same(viewed, expected_view);
  expect_same(wide, expected_wide);
}

TEST_F(Fusion, LimitsCutGroups) {
  const Tensor a = ramp({40});
  Tensor eager = a;
  for (int i = 0; i < 150; ++i) eager = eager * 0.5 + 0.25;
  const auto groups = explain([&] {
    Tensor x = a;
    for (int i = 0; i < 150; ++i) x = x * 0.5 + 0.25;
    expect_same(x, eager);
    return x;
  });
  EXPECT_EQ(groups.size(), 10u);  // 300 operations, 32 numbers a group
  EXPECT_EQ(groups[0].reason, "the limit of 32 numbers was reached");
  std::vector<Tensor> inputs;
  for (int i = 0; i < 40; ++i) inputs.push_back(ramp({40}, 0.01f * static_cast<float>(i)));
  Tensor total = inputs[0];
  for (const Tensor& input : inputs) total = total + input;
  const auto many_inputs = explain([&] {
    Tensor x = inputs[0];
    for (const Tensor& input : inputs) x = x + input;
    expect_same(x, total);
    return x;
  });
  ASSERT_GE(many_inputs.size(), 3u);
  EXPECT_EQ(many_inputs[0].reason, "the limit of 16 inputs was reached");
  EXPECT_EQ(many_inputs[0].inputs, jit::Group::kMaxInputs);
}

TEST_F(Fusion, AGpusGroupHoldsAsManyValuesAsOneLaunchWrites) {
  const Scalar number(2.0);
  const jit::RecordedArgument argument{.number = &number};
  for (const Device device : {kCpu, Device{DeviceType::kCuda, 0}}) {
    const auto group =
        std::make_shared<jit::Group>(contiguous_layout({10}), Stream{device, nullptr});
    std::vector<Tensor> held;
    const auto record = [&] {
      return group->record_op(jit::find_op("exp"), {DType::kFloat32, DType::kFloat32},
                              {&argument, 1});
    };
    for (int i = 0; i < 16; ++i) {
      EXPECT_EQ(group->obstacle({&argument, 1}), nullptr) << i;
      held.push_back(record()->tensor);
      record();  // held by nobody
    }
    if (device.is_cpu()) {
      EXPECT_EQ(group->obstacle({}), nullptr);
      continue;
    }
    EXPECT_STREQ(group->obstacle({}),
                 "the limit of 16 values of a GPU's group that are held was reached");
    held.pop_back();
    EXPECT_EQ(group->obstacle({}), nullptr);
  }
}

TEST_F(Fusion, ErrorsAreRaisedWhenRecording) {
  const Tensor a = ramp({3}), b = ramp({4});
  Fused scope;
  EXPECT_THROW(a + b, ShapeError);
  EXPECT_THROW(bitwise_and(a, a), DTypeError);
  const Tensor good = a + 1;
  scope.close();
  EXPECT_EQ(good.data<float>()[0], a.data<float>()[0] + 1);
}

TEST_F(Fusion, SwitchedOffNothingIsDeferred) {
  set_kernel_fusion(false);
  const Tensor a = ramp({30});
  Fused scope;
  const Tensor x = a + 1;
  EXPECT_FALSE(is_pending(x));
  EXPECT_TRUE(explain([&] { return a * 2; }).empty());
}

TEST_F(Fusion, ExplainCountsBytes) {
  const Tensor a = ramp({1000});
  const auto groups = explain([&] { return exp(a * 2 + 1); });
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].ops, (std::vector<std::string>{"multiply", "add", "exp"}));
  EXPECT_EQ(groups[0].inputs, 1);
  EXPECT_EQ(groups[0].outputs, 1);
  EXPECT_EQ(groups[0].unfused_bytes, 3 * 2 * 4000);
  EXPECT_EQ(groups[0].fused_bytes, 2 * 4000);
  EXPECT_EQ(groups[0].reason, "the fused scope ended");
  EXPECT_NE(to_text(groups).find("16000 of 24000 bytes saved"), std::string::npos);
}

TEST_F(Fusion, ValuesNobodyHoldsAreNotComputed) {
  const Tensor a = ramp({1000});
  const auto groups = explain([&] { const Tensor dropped = a * 2; });
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].outputs, 0);
  EXPECT_EQ(groups[0].fused_bytes, 0);
}

TEST_F(Fusion, TrailingReductionsJoinTheGroup) {
  const Tensor a = ramp({30, 500});
  std::optional<Tensor> sums, all, leading, kept;
  const auto groups = explain([&] {
    const Tensor squares = a * a;
    sums = jit::record_reduction(ReduceKind::kSum, squares, std::vector<int>{1}, false,
                                 DType::kFloat32);
    kept = jit::record_reduction(ReduceKind::kMax, squares, std::vector<int>{1}, true,
                                 DType::kFloat32);
    leading = jit::record_reduction(ReduceKind::kSum, squares, std::vector<int>{0}, false,
                                    DType::kFloat32);
  });
  ASSERT_TRUE(sums && kept);
  EXPECT_FALSE(leading);  // not over trailing axes: the reduction operator does it
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].outputs, 2);
  EXPECT_EQ(kept->shape(), (Shape{30, 1}));
  for (int row = 0; row < 30; ++row) {
    double total = 0;
    float top = 0;
    for (int i = 0; i < 500; ++i) {
      const float x = a.data<float>()[row * 500 + i];
      total += double(x * x);
      top = std::max(top, x * x);
    }
    EXPECT_NEAR(sums->data<float>()[row], total, 1e-5 * total);
    EXPECT_EQ(kept->data<float>()[row], top);
  }
}

/// The bytes of sums over all of some computed values, and over their rows, each made in the pass
/// that computes them.
std::string bits_of_fused_sums(const Tensor& a, const Tensor& b) {
  const std::function<Tensor()> sums[] = {[&] { return sum(a * b + a); },
                                          [&] { return mean(exp(a * b) * b); },
                                          [&] { return sum(a * b + a, {1}); }};
  std::string bits;
  for (const auto& make : sums) {
    Tensor result;
    const auto groups = explain([&] { result = make(); });
    EXPECT_EQ(groups.size(), 1u) << to_text(groups);
    bits.append(static_cast<const char*>(result.data()), static_cast<size_t>(result.nbytes()));
  }
  return bits;
}

TEST_F(Fusion, SumsHaveTheSameBitsForAnyNumberOfThreads) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;  // sums of these in another order round otherwise
  Tensor a = empty({301, 4001}, DType::kFloat32, kCpu), b = empty({4001}, DType::kFloat32, kCpu);
  for (const Tensor* each : {&a, &b}) {
    for (int64_t i = 0; i < each->size(); ++i) each->data<float>()[i] = normal(random);
  }
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    const Tensor x = cast(a, dtype), y = cast(b, dtype);
    backend::set_thread_count(1);
    const std::string of_one = bits_of_fused_sums(x, y);
    for (const int threads : {2, 3, 5, 8}) {
      backend::set_thread_count(threads);
      EXPECT_TRUE(bits_of_fused_sums(x, y) == of_one) << threads << " threads, " << name(dtype);
    }
    backend::set_thread_count(0);
  }
}

TEST_F(Fusion, AReductionMayBeUsedFurther) {
  const Tensor a = ramp({8, 100});
  Tensor centred;
  const auto groups = explain([&] {
    const Tensor doubled = a * 2;
    const auto mean = jit::record_reduction(ReduceKind::kMean, doubled, std::vector<int>{1}, true,
                                            DType::kFloat32);
    centred = doubled - *mean;
  });
  EXPECT_EQ(groups.size(), 2u);
  for (int row = 0; row < 8; ++row) {
    double total = 0;
    for (int i = 0; i < 100; ++i) total += double(centred.data<float>()[row * 100 + i]);
    EXPECT_NEAR(total, 0.0, 1e-4);
  }
}

TEST_F(Fusion, WhatOnlyAReductionReadsKeepsItsPlaceUntilTheBlockIsReduced) {
  // Reductions run behind all computations of a block, so the last computation that reads what they
  // read must not write its result over it, though nobody holds it any more.
  const Tensor a = full({8}, 1.0, DType::kFloat32);
  std::optional<Tensor> sum;
  Tensor later;
  const auto groups = explain([&] {
    const Tensor between = a + 1;
    sum = jit::record_reduction(ReduceKind::kSum, between, std::vector<int>{0}, false,
                                DType::kFloat32);
    later = between * 1.5 + a;
  });
  ASSERT_TRUE(sum);
  ASSERT_EQ(groups.size(), 1u) << to_text(groups);
  EXPECT_EQ(*sum->data<float>(), 16.0f);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(later.data<float>()[i], 4.0f);
}

TEST_F(Fusion, WritingThroughAnotherViewOfTheSameMemoryRunsTheReadersFirst) {
  // Two tensors over one buffer of somebody else, as two imports of one NumPy array are: they
  // share bytes, not a storage.
  std::vector<float> buffer(300, 1.0f);
  const auto view_of = [&](int64_t first, int64_t count) {
    auto storage = std::make_shared<Storage>(buffer.data() + first, count * 4, kCpu, nullptr);
    return Tensor(std::move(storage), contiguous_layout({count}), DType::kFloat32);
  };
  const Tensor read = view_of(0, 200), written = view_of(199, 101), apart = view_of(200, 100);
  Fused scope;
  const Tensor result = read * 2;
  fill(apart, 5.0);
  EXPECT_TRUE(is_pending(result));  // bytes that lie apart are no hazard
  fill(written, 7.0);
  scope.close();
  for (int i = 0; i < 200; ++i) ASSERT_EQ(result.data<float>()[i], 2.0f) << i;
  EXPECT_EQ(buffer[198], 1.0f);
  EXPECT_EQ(buffer[199], 7.0f);
}

TEST_F(Fusion, AnotherThreadsWriteComesAfterWhatReadsBefore) {
  const Tensor x = ones({100}), apart = ones({100});
  Fused scope;
  const Tensor result = x + 1;
  std::thread([&] { fill(apart, 5.0); }).join();
  EXPECT_TRUE(is_pending(result));
  std::thread([&] { fill(x, 5.0); }).join();
  const Tensor later = x + 1;
  scope.close();
  EXPECT_EQ(result.data<float>()[0], 2.0f);
  EXPECT_EQ(later.data<float>()[0], 6.0f);
}

TEST_F(Fusion, ThreadsWriteWhatEachOtherReads) {
  const Tensor x = zeros({64}), y = zeros({64});
  std::mutex turn;  // calls of two threads that write one tensor are the caller's to order
  const auto in_turn = [&](const auto& call) {
    const std::lock_guard lock(turn);
    return call();
  };
  const auto work = [&](const Tensor& read, const Tensor& written) {
    for (int i = 0; i < 500; ++i) {
      Fused scope;
      const auto [value, before] =
          in_turn([&] { return std::pair(read + 1, read.data<float>()[0]); });
      in_turn([&] { fill(written, i); });
      EXPECT_EQ(in_turn([&] { return value.data<float>()[0]; }), before + 1);
    }
  };
  std::thread other([&] { work(y, x); });
  work(x, y);
  other.join();
}

TEST_F(Fusion, AScopeThatAnotherThreadEndsRecordsNoMore) {
  const Tensor x = ones({8});
  Fused scope;
  const Tensor pending = x + 1;
  std::thread([&] { scope.abandon(); }).join();
  const Tensor later = x + 2;
  EXPECT_FALSE(is_pending(later));
  EXPECT_EQ(pending.data<float>()[0], 2.0f);
  scope.close();
  EXPECT_FALSE(is_pending(x + 3));
}

}  // namespace
}  // namespace cuop
