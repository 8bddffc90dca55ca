#include "cuop/ops/trial_buffers.h"

#include <gtest/gtest.h>

#include <numeric>

#include "cuop/ops/create/create.h"

namespace cuop {
namespace {

TEST(TrialBuffers, HoldTwiceTheCacheInCopiesOfTheirAlignment) {
  const Tensor x = empty({100}), y = empty({7}, DType::kFloat64);
  std::iota(x.data<float>(), x.data<float>() + 100, 0.0F);
  std::iota(y.data<double>(), y.data<double>() + 7, 100.0);
  TrialBuffers buffers({{x.data(), 100, DType::kFloat32, 8}, {y.data(), 7, DType::kFloat64}}, kCpu,
                       1000);
  EXPECT_EQ(buffers.count(), 5);  // 457 bytes each, 2000 wanted
  for (int turn = 0; turn < 7; ++turn) {
    const Tensor &a = buffers.copy(turn, 0), &b = buffers.copy(turn, 1);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(a.data()) % 16, 8U);
    EXPECT_EQ(a.data<float>()[99], 99.0F);
    EXPECT_EQ(b.data<double>()[6], 106.0);
    EXPECT_EQ(a.data(), buffers.copy(turn + 5, 0).data());
    EXPECT_NE(a.data(), buffers.copy(turn + 1, 0).data());
  }
  for (int turn = 0; turn < 5; ++turn) fill(buffers.copy(turn, 1), 0.0);
  buffers.restore(1, 4, 2);  // turns 4 and 5, the last set and the first
  for (int turn = 0; turn < 5; ++turn) {
    const bool is_restored = turn == 4 || turn == 0;
    EXPECT_EQ(buffers.copy(turn, 1).data<double>()[6], is_restored ? 106.0 : 0.0) << turn;
  }
}

TEST(TrialBuffers, LargeOnesNeedNoSecondSet) {
  const Tensor x = ones({1000});
  EXPECT_EQ(TrialBuffers({{x.data(), 1000, DType::kFloat32}}, kCpu, 100).count(), 1);
}

}  // namespace
}  // namespace cuop
