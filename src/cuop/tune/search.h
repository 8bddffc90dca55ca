// The search for the fastest way to do one piece of work. It decides from what a clock says and
// nothing else, so the same times always give the same winner.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cuop/tune/clock.h"

namespace cuop::tune {

/// One way to do the work.
struct Candidate {
  std::string name;
  /// Does the work once. `turn` counts the runs of all candidates from 0: buffers that are rotated
  /// are chosen by it, so that no run finds its data in a cache.
  std::function<void(int64_t turn)> run;
  /// Called after the candidate's first run, whose turn was 0: "" or how its result differs from
  /// the default's. Not called for the default.
  std::function<std::string()> disagreement = {};
  std::string why_not = {};  ///< not run at all for this reason, when there is one
  /// Called after the candidate's first run: the name of an earlier candidate that did the very
  /// same, "" for none. Not called for the default.
  std::function<std::string()> twin = {};
};

struct SearchLimits {
  int rounds = 9;  ///< samples of each candidate; more where chance needs more to be ruled out
  double seconds = 30.0;  ///< for the whole search; what a candidate compiles has what is left
};

struct SearchOptions : SearchLimits {
  double least_gain = 0.02;       ///< what a candidate must gain over the default, of 1
  double significance = 0.05;     ///< chance that any candidate wins which is not that much faster
  double hopeless = 3.0;          ///< times the default's first run after which one is given up
  double least_sample_ms = 0.02;  ///< shorter runs are repeated within a sample
  int most_repetitions = 1000;
  /// Called before every sample, outside the time that counts, with the turns that it will run.
  std::function<void(int64_t first_turn, int count)> before_sample = {};
  uint64_t seed = 0x9e3779b97f4a7c15u;  ///< of the order within the rounds
};

/// What was found about one candidate.
struct Measurement {
  std::string name;
  std::string why_out;     ///< "" for one that was measured to the end
  double median_ms = 0.0;  ///< of one run; 0 when it was never measured
  int wins = 0;            ///< rounds in which it gained at least what it must
};

struct SearchResult {
  size_t winner = 0;                      ///< index of the candidate, 0 for the default
  double gain = 0.0;                      ///< part of the default's time that the winner saves
  std::vector<Measurement> measurements;  ///< of each candidate
  int rounds = 0;                         ///< that were done
  bool is_complete = true;                ///< false: time ran out

  /// One line a candidate: its time, or why it is out.
  std::string text() const;
};
/// Of candidates that were not measured, all for one reason.
std::vector<Measurement> not_measured(const std::vector<std::string>& names,
                                      const std::string& why);

/// The first candidate, the default, unless another one gives the same result and is faster by
/// `least_gain` in so many rounds that chance explains it in fewer than `significance` of all
/// searches (sign test over the rounds, the significance shared among the candidates); of several
/// the one with the smallest median. Candidates are timed in turn, in a new random order each
/// round. Errors of the default leave; another candidate that fails is out.
SearchResult search(const std::vector<Candidate>& candidates, Clock& clock,
                    const SearchOptions& options);

/// How many of `rounds` must be won so that a coin would do so with a chance of at most
/// `significance`; rounds + 1 when even all of them are not enough.
int needed_wins(int rounds, double significance);

}  // namespace cuop::tune
