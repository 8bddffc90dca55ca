#include "cuop/ops/trial.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "cuop/ops/create/create.h"

namespace cuop {
namespace {

using ::testing::HasSubstr;

TEST(Trial, SetsHoldTwiceTheCacheInCopiesOfTheirAlignment) {
  const Tensor x = empty({100}), y = empty({7}, DType::kFloat64);
  std::iota(x.data<float>(), x.data<float>() + 100, 0.0F);
  std::iota(y.data<double>(), y.data<double>() + 7, 100.0);
  Trial trial({{borrowed(x.data(), 100, DType::kFloat32, kCpu), false, 8}, {y, true}}, 1000);
  EXPECT_EQ(trial.count(), 5);  // 456 bytes each, 2000 wanted
  for (int turn = 0; turn < 7; ++turn) {
    const Tensor &a = trial.set(turn)[0], &b = trial.set(turn)[1];
    EXPECT_EQ(reinterpret_cast<uintptr_t>(a.data()) % 16, 8U);
    EXPECT_EQ(a.data<float>()[99], 99.0F);
    EXPECT_EQ(b.data<double>()[6], 106.0);
    EXPECT_EQ(a.data(), trial.set(turn + 5)[0].data());
    EXPECT_NE(a.data(), trial.set(turn + 1)[0].data());
  }
  for (int turn = 0; turn < 5; ++turn) fill(trial.set(turn)[1], 0.0);
  trial.restore(4, 2);  // turns 4 and 5, the last set and the first
  for (int turn = 0; turn < 5; ++turn) {
    const bool is_restored = turn == 4 || turn == 0;
    EXPECT_EQ(trial.set(turn)[1].data<double>()[6], is_restored ? 106.0 : 0.0) << turn;
  }
}

TEST(Trial, LargeOnesNeedNoSecondSet) {
  EXPECT_EQ(Trial({{ones({1000})}}, 100).count(), 1);
  EXPECT_EQ(Trial({}, 100).count(), 1);
}

TEST(Trial, WorksOnCopiesThatStartAnewAndShareWhatTheOriginalsShare) {
  const Tensor x = full({8}, 1.0), y = full({8}, 2.0);
  Trial trial({{x}, {y, true}, {y, true}}, 96);  // each set has 96 bytes
  EXPECT_EQ(trial.count(), 3);
  for (int turn = 0; turn < 3; ++turn) {
    const auto& copies = trial.set(turn);
    EXPECT_FALSE(may_overlap(copies[0], x));
    EXPECT_TRUE(is_same_view(copies[1], copies[2]));
    fill(copies[1], 7.0);
  }
  EXPECT_EQ(y.data<float>()[0], 2.0F);
  trial.restore(4, 2);  // the sets of turns 1 and 2
  const auto value = [&](int turn) { return trial.set(turn)[1].data<float>()[0]; };
  EXPECT_EQ(value(0), 7.0F);
  EXPECT_EQ(value(1), 2.0F);
  EXPECT_EQ(value(2), 2.0F);
  EXPECT_TRUE(Trial::is_possible({x, y, y}));
  const Tensor part = x.with_layout({Shape({4}), Strides({1}), 0});
  EXPECT_FALSE(Trial::is_possible({x, part}));
}

TEST(Trial, NoMoreRunsFollowEachOtherThanThereAreSetsThatStartAnew) {
  const Tensor x = full({8}, 2.0);
  for (const int sets : {1, 3}) {
    Trial trial({{x, true}}, 16 * (sets - 1));
    ASSERT_EQ(trial.count(), sets);
    std::vector<float> found;
    const auto run = [&](size_t, const std::vector<Tensor>& set) {
      found.push_back(set[0].data<float>()[5]);
      fill(set[0], 3.0);
    };
    // A busy machine may make one run look hopeless: a search without rounds shows too little.
    for (int attempt = 0; attempt < 100 && found.size() <= 4; ++attempt) {
      found.clear();
      trial.search({"one", "other"}, kCpu, run, {3, 10.0});
      EXPECT_THAT(found, testing::Each(2.0F));
    }
    EXPECT_GT(found.size(), 4U);
  }
}

TEST(Trial, ACandidateWithAnotherResultIsOutByTheNameOfTheOperand) {
  const Tensor x = full({8}, 1.0), y = full({8}, 2.0);
  Trial trial({{x}, {.original = y, .is_written = true, .name = "y"}}, 1000);
  const auto run = [](size_t candidate, const std::vector<Tensor>& set) {
    // Adds to what is there: what starts anew is the same for both.
    for (int64_t i = 0; i < 8; ++i) set[1].data<float>()[i] += set[0].data<float>()[i];
    if (candidate == 2) set[1].data<float>()[3] = 9.0F;
  };
  const auto result = trial.search({"default", "same", "wrong"}, kCpu, run, {3, 10.0});
  EXPECT_EQ(result.measurements[2].why_out,
            "another result: y: element 3 is 9, the default's is 3");
  EXPECT_THAT(result.measurements[1].why_out, testing::Not(HasSubstr("another result")));
  EXPECT_EQ(y.data<float>()[3], 2.0F);
}

}  // namespace
}  // namespace cuop
