#include "cuop/tune/library_tuning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "cuop/tune/database.h"
#include "cuop/tune/permission.h"
#include "tests/temporary_folder.h"
#include "tests/tune/fake_clock.h"

namespace cuop::tune {
namespace {

using ::testing::HasSubstr;

class LibraryTuningTest : public ::testing::Test {
 protected:
  LibraryTuningTest() { set_database({.directory = (folder_.path() / "store").string()}); }
  ~LibraryTuningTest() override { set_database({}); }

  /// Algorithms "0", "1" and so on that take these times.
  LibraryProblem problem(const std::string& key, const std::vector<double>& times) {
    LibraryProblem made{.key = key};
    for (size_t i = 0; i < times.size(); ++i) {
      made.values.push_back(std::to_string(i));
      Candidate candidate;
      candidate.name = "algorithm " + made.values.back();
      candidate.run = [this, ms = times[i]](int64_t) { clock_.now_ms += ms; };
      candidate.disagreement = [] { return ""; };
      made.candidates.push_back(candidate);
    }
    made.use = [this](size_t winner) { used_.push_back(winner); };
    return made;
  }

  test::TemporaryFolder folder_;
  test::FakeClock clock_;
  std::vector<size_t> used_;
};

TEST_F(LibraryTuningTest, ScopesNestWithinTheirThread) {
  EXPECT_EQ(LibraryTuning::current(), nullptr);
  LibraryTuning outer(9, 30.0);
  {
    const LibraryTuning inner(9, 30.0);
    EXPECT_EQ(LibraryTuning::current(), &inner);
  }
  EXPECT_EQ(LibraryTuning::current(), &outer);
}

TEST_F(LibraryTuningTest, TheFastestAlgorithmIsUsedStoredAndTold) {
  LibraryTuning tuning(9, 30.0);
  ASSERT_TRUE(tuning.wants("gemm", kCpu));
  tuning.search(problem("gemm", {1.0, 0.5, 0.8}), clock_);
  EXPECT_EQ(used_, std::vector<size_t>{1});
  EXPECT_THAT(tuning.text(), HasSubstr("gemm\nalgorithm 0: 1 ms (default)\nalgorithm 1: 0.5 ms"));
  EXPECT_DOUBLE_EQ(tuning.gain(), 0.5);
  EXPECT_EQ(tuning.fastest(), "algorithm 1");
  EXPECT_EQ(tuning.counts().searched, 1);
  EXPECT_GE(tuning.made_in_ms(), 0.0);
  const auto stored = stored_choice("gemm");
  ASSERT_TRUE(stored.has_value());
  EXPECT_EQ(stored->value, "1");
  EXPECT_EQ(stored->rounds, 9);
  EXPECT_FALSE(tuning.wants("gemm", kCpu));  // searched already
}

TEST_F(LibraryTuningTest, NoMoreRunsFollowEachOtherThanThereAreBuffers) {
  for (const int buffers : {1, 3}) {
    LibraryProblem tried = problem(std::to_string(buffers), {1e-4, 2e-4});
    tried.most_repetitions = buffers;
    std::vector<int> runs;
    tried.before_sample = [&](int64_t, int count) { runs.push_back(count); };
    LibraryTuning(9, 30.0).search(tried, clock_);
    ASSERT_FALSE(runs.empty());
    EXPECT_EQ(*std::max_element(runs.begin(), runs.end()), buffers);
  }
}

TEST_F(LibraryTuningTest, WhatIsStoredIsNotSearchedAgainUnlessMoreRoundsAreAskedFor) {
  LibraryTuning(9, 30.0).search(problem("gemm", {1.0, 0.5}), clock_);
  LibraryTuning same(9, 30.0);
  EXPECT_FALSE(same.wants("gemm", kCpu));
  EXPECT_THAT(same.text(), HasSubstr("stored: 1"));
  EXPECT_DOUBLE_EQ(same.gain(), 0.5);
  EXPECT_EQ(same.fastest(), "stored");
  EXPECT_EQ(same.counts().stored, 1);
  EXPECT_EQ(same.counts().searched, 0);
  EXPECT_TRUE(LibraryTuning(21, 30.0).wants("gemm", kCpu));
  EXPECT_TRUE(LibraryTuning(9, 30.0).wants("conv", kCpu));
}

TEST_F(LibraryTuningTest, OfSeveralProblemsTheLargestGainIsTold) {
  LibraryTuning tuning(9, 30.0);
  tuning.search(problem("a", {1.0, 2.0}), clock_);
  EXPECT_EQ(tuning.fastest(), "algorithm 0");
  tuning.search(problem("b", {1.0, 1.0, 0.5}), clock_);
  tuning.search(problem("c", {1.0, 0.75}), clock_);
  EXPECT_EQ(tuning.fastest(), "algorithm 2");
  EXPECT_DOUBLE_EQ(tuning.gain(), 0.5);
  EXPECT_EQ(tuning.counts().searched, 3);
}

TEST_F(LibraryTuningTest, FrozenNothingIsSearchedForAndWhatIsStoredIsTold) {
  LibraryTuning(9, 30.0).search(problem("gemm", {1.0, 0.5}), clock_);
  set_frozen(true);
  LibraryTuning tuning(9, 30.0);
  EXPECT_FALSE(tuning.wants("gemm", kCpu));
  EXPECT_FALSE(tuning.wants("conv", kCpu));
  set_frozen(false);
  EXPECT_THAT(tuning.text(), HasSubstr("conv\n  not measured: the tuner is frozen"));
  EXPECT_EQ(tuning.counts().stored, 1);
  EXPECT_EQ(tuning.counts().put_off, 1);
}

TEST_F(LibraryTuningTest, WhatTimeDidNotAllowIsNotStored) {
  LibraryTuning tuning(9, -1.0);
  tuning.search(problem("gemm", {1.0, 0.5}), clock_);
  EXPECT_FALSE(tuning.is_complete());
  EXPECT_EQ(used_, std::vector<size_t>{0});
  EXPECT_FALSE(stored_choice("gemm").has_value());
}

TEST_F(LibraryTuningTest, ADatabaseThatIsNotUsedReadsAndWritesNothing) {
  const DatabaseStatistics before = database_statistics();
  store_choice("a", {"1", 1.0, 0.5, 9});
  EXPECT_EQ(database()->entries().size(), 1U);
  set_database({.is_used = false});
  EXPECT_EQ(database(), nullptr);
  EXPECT_FALSE(stored_choice("a").has_value());
  store_choice("b", {"1", 1.0, 0.5, 9});
  note_loaded(true);
  note_loaded(false);
  const DatabaseStatistics after = database_statistics();
  EXPECT_EQ(after.searches - before.searches, 2);
  EXPECT_EQ(after.loaded - before.loaded, 1);
  EXPECT_EQ(after.refused - before.refused, 1);
}

}  // namespace
}  // namespace cuop::tune
