#include "cuop/tune/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <stdexcept>

#include "cuop/core/deadline.h"
#include "cuop/core/error.h"
#include "tests/tune/fake_clock.h"

namespace cuop::tune {
namespace {

using ::testing::HasSubstr;

class SearchTest : public ::testing::Test {
 protected:
  /// A candidate whose runs take what `ms` answers.
  Candidate takes(const std::string& name, std::function<double()> ms) {
    Candidate candidate;
    candidate.name = name;
    candidate.run = [this, name, ms](int64_t turn) {
      clock_.now_ms += ms();
      runs_.emplace_back(name, turn);
    };
    candidate.disagreement = [] { return ""; };
    return candidate;
  }
  Candidate takes(const std::string& name, double ms) {
    return takes(name, [ms] { return ms; });
  }
  int runs_of(const std::string& name) const {
    return static_cast<int>(std::count_if(runs_.begin(), runs_.end(),
                                          [&](const auto& run) { return run.first == name; }));
  }
  SearchResult found(const std::vector<Candidate>& candidates, const SearchOptions& options = {}) {
    return search(candidates, clock_, options);
  }

  test::FakeClock clock_;
  std::vector<std::pair<std::string, int64_t>> runs_;
};

TEST_F(SearchTest, TheFastestWinsAndItsGainIsTold) {
  const auto result = found({takes("a", 1.0), takes("b", 0.9), takes("c", 0.8), takes("d", 1.1)});
  EXPECT_EQ(result.winner, 2U);
  EXPECT_NEAR(result.gain, 0.2, 1e-9);
  EXPECT_TRUE(result.is_complete);
  EXPECT_NEAR(result.measurements[2].median_ms, 0.8, 1e-9);
  EXPECT_THAT(result.text(),
              HasSubstr("a: 1 ms (default)\nb: 0.9 ms\nc: 0.8 ms, 20 % less than a"));
}

TEST_F(SearchTest, TiesAndSmallGainsKeepTheDefault) {
  for (const double ms : {1.0, 0.99, 0.981}) {
    const auto result = found({takes("a", 1.0), takes("b", ms)});
    EXPECT_EQ(result.winner, 0U) << ms;
    EXPECT_EQ(result.gain, 0.0);
    EXPECT_THAT(result.text(), HasSubstr("not faster"));
  }
  EXPECT_EQ(found({takes("a", 1.0), takes("b", 0.979)}).winner, 1U);
}

TEST_F(SearchTest, AWrongResultNeverWins) {
  Candidate wrong = takes("b", 0.01);
  wrong.disagreement = [] { return "element 3 is 4, the default's is 5"; };
  const auto result = found({takes("a", 1.0), wrong});
  EXPECT_EQ(result.winner, 0U);
  EXPECT_EQ(result.measurements[1].why_out, "another result: element 3 is 4, the default's is 5");
  EXPECT_EQ(runs_of("b"), 1);
}

TEST_F(SearchTest, ACandidateThatFailsIsOutWheneverItDoes) {
  for (const int good_runs : {0, 1, 4}) {
    int left = good_runs;
    Candidate failing = takes("b", [&left]() -> double {
      if (left-- == 0) throw std::runtime_error("illegal address");
      return 0.1;
    });
    const auto result = found({takes("a", 1.0), failing, takes("c", 0.5)});
    EXPECT_EQ(result.winner, 2U) << good_runs;
    EXPECT_EQ(result.measurements[1].why_out, "failed: illegal address");
  }
  Candidate failing = takes("a", []() -> double { throw ExecutionError("the default fails"); });
  EXPECT_THROW(found({failing, takes("b", 1.0)}), ExecutionError);
}

TEST_F(SearchTest, NoiseDoesNotFlipTheDefault) {
  // Seven candidates as fast as the default, under noise of 5 %: with a significance of 5 % a few
  // of 400 searches may go wrong; the bar of 2 % makes that rarer still.
  int flips = 0;
  std::mt19937_64 random(1);
  std::normal_distribution<double> noise(1.0, 0.05);
  for (int i = 0; i < 400; ++i) {
    std::vector<Candidate> candidates;
    for (int c = 0; c < 8; ++c) {
      candidates.push_back(takes(std::string(1, static_cast<char>('a' + c)),
                                 [&] { return std::max(0.1, noise(random)); }));
    }
    flips += found(candidates).winner == 0 ? 0 : 1;
  }
  EXPECT_LE(flips, 8);
}

TEST_F(SearchTest, AClearGainIsFoundUnderNoiseAndDrift) {
  std::mt19937_64 random(2);
  std::normal_distribution<double> noise(1.0, 0.02);
  int wins = 0;
  for (int i = 0; i < 100; ++i) {
    double drift = 1.0;  // the machine slows down by a half within the search
    const auto drifting = [&](double ms) {
      return [&, ms] { return ms * (drift += 0.02) * noise(random); };
    };
    wins += found({takes("a", drifting(1.0)), takes("b", drifting(0.8))}).winner == 1 ? 1 : 0;
  }
  EXPECT_GE(wins, 95);
}

TEST_F(SearchTest, ADriftThatAllShareDecidesNothing) {
  // The machine becomes eight times slower, or faster, from round to round: who is compared with a
  // sample of another round wins or loses by the drift alone.
  for (const double step : {1.25, 0.8}) {
    for (const double ms : {0.9, 1.0}) {
      const auto drifting = [&](double of_one) {
        return
            [&, of_one] { return of_one * std::pow(step, static_cast<double>(runs_.size() / 2)); };
      };
      runs_.clear();
      const auto result = found({takes("a", drifting(1.0)), takes("b", drifting(ms))});
      EXPECT_EQ(result.winner, ms < 1.0 ? 1U : 0U) << step << ' ' << result.text();
      EXPECT_NEAR(result.gain, ms < 1.0 ? 0.1 : 0.0, 1e-9);
    }
  }
}

TEST_F(SearchTest, CandidatesTakeTurnsOnChangingBuffersInRandomOrder) {
  SearchOptions options;
  options.rounds = 6;
  options.significance = 1.0;
  found({takes("a", 1.0), takes("b", 0.9)}, options);
  ASSERT_EQ(runs_.size(), 16U);  // once to compare, once to warm up, six rounds
  std::map<std::string, int> firsts;
  for (size_t i = 4; i < runs_.size(); i += 2) {
    EXPECT_NE(runs_[i].first, runs_[i + 1].first);
    ++firsts[runs_[i].first];
  }
  EXPECT_EQ(firsts.size(), 2U);
  for (size_t i = 2; i < runs_.size(); ++i) EXPECT_EQ(runs_[i].second, static_cast<int64_t>(i - 1));
  const auto before = std::exchange(runs_, {});
  found({takes("a", 1.0), takes("b", 0.9)}, options);
  EXPECT_EQ(runs_, before);  // the order is the same in every process
}

TEST_F(SearchTest, ShortRunsAreRepeatedWithinASample) {
  SearchOptions options;
  options.least_sample_ms = 0.02;
  const auto result = found({takes("a", 0.001), takes("b", 0.0005)}, options);
  EXPECT_EQ(result.winner, 1U);
  EXPECT_EQ(runs_of("a"), 2 + 9 * 20);
  EXPECT_NEAR(result.measurements[0].median_ms, 0.001, 1e-9);
}

TEST_F(SearchTest, WhatItsCallerRulesOutIsNotRun) {
  std::vector<Candidate> candidates{takes("a", 1.0), takes("b", 0.5), takes("c", 0.8)};
  candidates[1].why_not = "not run: too many operations";
  const auto result = found(candidates);
  EXPECT_EQ(result.winner, 2U);
  EXPECT_EQ(result.measurements[1].why_out, "not run: too many operations");
  EXPECT_EQ(runs_of("b"), 0);
}

TEST_F(SearchTest, OfManyCandidatesEachIsTriedAndTheFastestCanWin) {
  for (const int count : {16, 27, 40, 400}) {
    std::vector<Candidate> candidates;
    for (int c = 0; c < count; ++c) {
      candidates.push_back(takes(std::to_string(c), c + 1 == count ? 0.5 : 1.0));
    }
    const auto result = found(candidates);
    EXPECT_EQ(result.winner, static_cast<size_t>(count - 1));
    EXPECT_TRUE(result.is_complete);
    // As many rounds as let a coin win all of them in 5 of 100 searches at most.
    EXPECT_EQ(result.rounds, count <= 26 ? 9 : count == 400 ? 13 : 10) << count;
    for (int c = 1; c + 1 < count; ++c) EXPECT_GE(runs_of(std::to_string(c)), 2) << c;
    runs_.clear();
  }
}

TEST_F(SearchTest, FewRoundsAreMadeEnoughForOneToWin) {
  SearchOptions options;
  options.rounds = 1;
  const auto result = found({takes("a", 1.0), takes("b", 0.5)}, options);
  EXPECT_EQ(result.winner, 1U);
  EXPECT_EQ(result.rounds, 5);  // of four a coin wins all in 6 of 100
}

TEST_F(SearchTest, HopelessOnesAreGivenUpAfterOneSample) {
  const auto result = found({takes("a", 1.0), takes("b", 4.0)});
  EXPECT_THAT(result.measurements[1].why_out, HasSubstr("took 4 times the default's"));
  EXPECT_EQ(runs_of("b"), 2);
  EXPECT_EQ(result.rounds, 0);                       // nobody is left to compare with
  EXPECT_GT(result.measurements[0].median_ms, 0.0);  // but what they were compared with is told
}

TEST_F(SearchTest, WhatTimeDoesNotAllowDoesNotWin) {
  SearchOptions options;
  options.seconds = 0.005;
  auto result = found({takes("a", 1.0), takes("b", 0.5)}, options);
  EXPECT_EQ(result.winner, 0U);
  EXPECT_FALSE(result.is_complete);
  EXPECT_THAT(result.measurements[1].why_out, HasSubstr("not measured often enough"));
  options.seconds = -1.0;
  result = found({takes("a", 1.0), takes("b", 0.5)}, options);
  EXPECT_EQ(result.measurements[1].why_out, "not run: out of time");
  EXPECT_FALSE(result.is_complete);
}

TEST_F(SearchTest, ACandidatesFirstRunHasWhatIsLeftOfTheTime) {
  SearchOptions options;
  options.seconds = 500.0;
  std::map<std::string, double> left;  // as each first run begins
  const auto two_hundred_seconds = [&](const std::string& name) {
    return takes(name, [this, &left, name] {
      left.emplace(name, seconds_left());
      return 200e3;
    });
  };
  std::vector<Candidate> candidates;
  for (const char* name : {"a", "b", "c", "d"}) candidates.push_back(two_hundred_seconds(name));
  const auto result = found(candidates, options);
  EXPECT_EQ(left["a"], std::numeric_limits<double>::infinity()) << "the caller needs the default";
  EXPECT_NEAR(left["b"], 300.0, 60.0);
  EXPECT_NEAR(left["c"], 100.0, 60.0);
  EXPECT_EQ(left.count("d"), 0U) << "there was no time left";
  EXPECT_TRUE(std::isinf(seconds_left()));
  EXPECT_FALSE(result.is_complete);
}

TEST_F(SearchTest, ASearchWithinACandidateHasNoMoreTimeThanThat) {
  SearchOptions options;
  options.seconds = 1000.0;
  const DeadlineScope outer(100.0);
  double left = 0.0;
  found({takes("a", 1.0), takes("b",
                                [&] {
                                  left = std::max(left, seconds_left());
                                  return 1.0;
                                })},
        options);
  EXPECT_LE(left, 100.0);
  EXPECT_GT(left, 0.0);
}

TEST_F(SearchTest, WhatFailsForWantOfTimeMakesTheSearchIncomplete) {
  SearchOptions options;
  options.seconds = 0.010;
  for (const double ms : {1.0, 20.0}) {
    clock_.now_ms = 0.0;
    Candidate failing = takes("b", 0.5);
    failing.run = [this, ms](int64_t) {
      clock_.now_ms += ms;
      throw CompilationError("not compiled in time");
    };
    const auto result = found({takes("a", 1.0), failing}, options);
    EXPECT_EQ(result.measurements[1].why_out, "failed: not compiled in time");
    EXPECT_EQ(result.is_complete, ms < 10.0) << ms;
  }
}

TEST_F(SearchTest, WrongOptionsAreRefused) {
  EXPECT_THROW(found({}), ExecutionError);
  SearchOptions options;
  options.rounds = 0;
  EXPECT_THROW(found({takes("a", 1.0)}, options), ExecutionError);
}

TEST(NeededWins, IsTheSignTest) {
  EXPECT_EQ(needed_wins(9, 0.05), 8);    // P(8 or 9 of 9) = 10/512
  EXPECT_EQ(needed_wins(9, 0.0195), 9);  // just below that
  EXPECT_EQ(needed_wins(9, 0.001), 10);  // 1/512 is too much
  EXPECT_EQ(needed_wins(1, 0.5), 1);
  EXPECT_EQ(needed_wins(4, 1.0), 0);
  EXPECT_EQ(needed_wins(100, 0.05), 59);
}

}  // namespace
}  // namespace cuop::tune
