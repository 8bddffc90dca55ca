#include "cuop/tune/library_tuning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

  /// Searches among algorithms "0", "1" and so on that take these times.
  std::optional<size_t> search(LibraryTuning& tuning, const std::string& key,
                               const std::vector<double>& times) {
    Problem problem{.key = key};
    problem.search = [&](const SearchLimits& limits) {
      std::vector<Candidate> candidates;
      for (size_t i = 0; i < times.size(); ++i) {
        problem.values.push_back(std::to_string(i));
        Candidate candidate;
        candidate.name = "algorithm " + problem.values.back();
        candidate.run = [this, ms = times[i]](int64_t) { clock_.now_ms += ms; };
        candidate.disagreement = [] { return ""; };
        candidates.push_back(candidate);
      }
      ++searches_;
      return finding_of(tune::search(candidates, clock_, {limits}));
    };
    return tuning.search(problem);
  }
  std::optional<size_t> search(int rounds, const std::string& key,
                               const std::vector<double>& times) {
    LibraryTuning tuning(rounds, 30.0);
    return search(tuning, key, times);
  }

  test::TemporaryFolder folder_;
  test::FakeClock clock_;
  int searches_ = 0;
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
  EXPECT_EQ(search(tuning, "gemm", {1.0, 0.5, 0.8}), 1U);
  EXPECT_THAT(tuning.text(), HasSubstr("gemm\nalgorithm 0: 1 ms (default)\nalgorithm 1: 0.5 ms"));
  EXPECT_DOUBLE_EQ(tuning.gain(), 0.5);
  EXPECT_EQ(tuning.fastest(), "algorithm 1");
  EXPECT_EQ(tuning.counts().searched, 1);
  EXPECT_GE(tuning.made_in_ms(), 0.0);
  const auto stored = stored_choice("gemm");
  ASSERT_TRUE(stored.has_value());
  EXPECT_EQ(stored->value, "1");
  EXPECT_EQ(stored->rounds, 9);
  EXPECT_EQ(search(tuning, "gemm", {1.0, 0.5}), std::nullopt);  // searched already
  EXPECT_EQ(searches_, 1);
}

TEST_F(LibraryTuningTest, WhatIsStoredIsNotSearchedAgainUnlessMoreRoundsAreAskedFor) {
  search(9, "gemm", {1.0, 0.5});
  LibraryTuning same(9, 30.0);
  EXPECT_EQ(search(same, "gemm", {1.0, 0.5}), std::nullopt);
  EXPECT_THAT(same.text(), HasSubstr("stored: 1"));
  EXPECT_DOUBLE_EQ(same.gain(), 0.5);
  EXPECT_EQ(same.fastest(), "stored");
  EXPECT_EQ(same.counts().stored, 1);
  EXPECT_EQ(same.counts().searched, 0);
  EXPECT_EQ(searches_, 1);
  EXPECT_EQ(search(21, "gemm", {1.0, 0.5}), 1U);
  EXPECT_EQ(search(9, "conv", {0.5, 1.0}), 0U);
}

TEST_F(LibraryTuningTest, OfSeveralProblemsTheLargestGainIsTold) {
  LibraryTuning tuning(9, 30.0);
  search(tuning, "a", {1.0, 2.0});
  EXPECT_EQ(tuning.fastest(), "algorithm 0");
  search(tuning, "b", {1.0, 1.0, 0.5});
  search(tuning, "c", {1.0, 0.75});
  EXPECT_EQ(tuning.fastest(), "algorithm 2");
  EXPECT_DOUBLE_EQ(tuning.gain(), 0.5);
  EXPECT_EQ(tuning.counts().searched, 3);
}

TEST_F(LibraryTuningTest, FrozenNothingIsSearchedForAndWhatIsStoredIsTold) {
  search(9, "gemm", {1.0, 0.5});
  set_frozen(true);
  LibraryTuning tuning(9, 30.0);
  EXPECT_EQ(search(tuning, "gemm", {1.0, 0.5}), std::nullopt);
  EXPECT_EQ(search(tuning, "conv", {1.0, 0.5}), std::nullopt);
  set_frozen(false);
  EXPECT_EQ(searches_, 1);
  EXPECT_THAT(tuning.text(), HasSubstr("conv\n  not measured: the tuner is frozen"));
  EXPECT_EQ(tuning.counts().stored, 1);
  EXPECT_EQ(tuning.counts().put_off, 1);
}

TEST_F(LibraryTuningTest, WhatTimeDidNotAllowIsNotStored) {
  LibraryTuning tuning(9, -1.0);
  EXPECT_EQ(search(tuning, "gemm", {1.0, 0.5}), 0U);
  EXPECT_FALSE(tuning.is_complete());
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
