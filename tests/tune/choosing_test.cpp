// Choices: what the process remembers, what is kept on disk, and what is measured anew.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "cuop/core/log.h"
#include "cuop/tune/tuner.h"
#include "tests/temporary_folder.h"

namespace cuop::tune {
namespace {

using Source = Choosing::Source;

class ChoosingTest : public ::testing::Test {
 protected:
  /// Among "plain", "tiled" and "wide"; measuring says that the last is the best.
  Choosing choose_in(int rounds) {
    Problem problem{.key = "product", .values = {"plain", "tiled", "wide"}};
    problem.search = [this](const SearchLimits&) {
      ++searches_;
      Finding finding;
      finding.winner = 2;
      return finding;
    };
    options_.limits.rounds = rounds;
    return choose(problem, options_);
  }

  Findings memory_{kMostFindings};
  ChoiceOptions options_{.is_asked = true, .memory = &memory_};
  int searches_ = 0;
};

TEST_F(ChoosingTest, AsManyRoundsAsAreRememberedAreEnough) {
  EXPECT_EQ(choose_in(9).source, Source::kMade);
  EXPECT_EQ(choose_in(9).source, Source::kMemory);
  EXPECT_EQ(choose_in(3).source, Source::kMemory);
  EXPECT_EQ(searches_, 1);
  EXPECT_EQ(choose_in(10).source, Source::kMade);
  EXPECT_EQ(searches_, 2);
}

TEST_F(ChoosingTest, WhatAnEarlierProcessChoseKeepsItsPlace) {
  const test::TemporaryFolder folder;
  ChoiceStore store((folder.path() / "store").string(), 1 << 20);
  options_.store = &store;
  store.save("product", {"tiled", 1.5, 0.25, 9});
  const Choosing known = choose_in(9);
  EXPECT_EQ(known.source, Source::kDisk);
  EXPECT_EQ(known.found->value, "tiled");
  EXPECT_EQ(known.found->winner, 1u);
  EXPECT_EQ(known.found->gain, 0.25);
  EXPECT_NE(known.found->text.find("an earlier process chose tiled in 9 rounds"),
            std::string::npos);
  EXPECT_EQ(choose_in(9).source, Source::kMemory);
  EXPECT_EQ(searches_, 0);
  memory_.clear();
  store.save("product", {"a kernel of another version", 1.5, 0.25, 9});
  const Choosing anew = choose_in(9);
  EXPECT_EQ(anew.source, Source::kMade);
  EXPECT_TRUE(anew.is_refused);
  EXPECT_EQ(anew.found->value, "wide");
}

TEST_F(ChoosingTest, ADirectoryThatCannotBeUsedIsWarnedOfOnce) {
  const test::TemporaryFolder folder;
  std::ofstream(folder.path() / "file") << "in the way";
  const std::string directory = (folder.path() / "file").string();
  ChoiceStore store(directory, 1 << 20);
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 3; ++i) store.save("product", {"tiled"});
  const std::string said = ::testing::internal::GetCapturedStderr();
  const std::string warning = "cache: " + directory + " is not used (";
  const size_t first = said.find(warning);
  EXPECT_EQ(first != std::string::npos, log_enabled(LogLevel::kWarn)) << said;
  if (first != std::string::npos) {
    EXPECT_EQ(said.find(warning, first + 1), std::string::npos) << said;
  }
}

}  // namespace
}  // namespace cuop::tune
