#include "cuop/tune/search.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "cuop/core/deadline.h"
#include "cuop/core/error.h"
#include "cuop/core/interrupt.h"
#include "cuop/core/text.h"

namespace cuop::tune {

namespace {

/// A coin wins all of them once in 2^64 searches: for any number of candidates that is enough.
constexpr int kMostRounds = 64;

double median(std::vector<double> values) {
  if (values.empty()) return 0.0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return 0.5 * (*middle + *std::max_element(values.begin(), middle));
}

class Search {
 public:
  Search(const std::vector<Candidate>& candidates, Clock& clock, const SearchOptions& options)
      : candidates_(candidates),
        clock_(clock),
        options_(options),
        deadline_(clock.seconds() + std::min(options.seconds, seconds_left())),
        samples_(candidates.size()) {
    for (const Candidate& candidate : candidates) {
      result_.measurements.push_back({candidate.name, candidate.why_not});
    }
  }

  SearchResult run() {
    try_each();
    const bool has_rivals = rivals() > 0;
    if (has_rivals) choose_order();
    while (rivals() > 0 && result_.rounds < rounds_ && !is_late()) round();
    if (rivals() > 0 && result_.rounds < rounds_) result_.is_complete = false;
    choose();
    return std::move(result_);
  }

 private:
  bool is_in(size_t i) const { return result_.measurements[i].why_out.empty(); }
  bool is_late() { return clock_.seconds() > deadline_; }

  /// Candidates beside the default that may still win.
  int rivals() const {
    int count = 0;
    for (size_t i = 1; i < candidates_.size(); ++i) count += is_in(i) ? 1 : 0;
    return count;
  }

  /// One run of each, to compile, to warm up and to compare the results.
  void try_each() {
    run_first(0);
    for (size_t i = 1; i < candidates_.size(); ++i) {
      if (!is_in(i)) continue;
      if (is_late()) {
        put_out(i, "not run: out of time");
        result_.is_complete = false;
        continue;
      }
      guarded(i, [&] {
        const DeadlineScope left(deadline_ - clock_.seconds());  // it may have to be compiled
        run_first(i);
        const std::string twin = candidates_[i].twin ? candidates_[i].twin() : "";
        if (!twin.empty()) return put_out(i, "not measured: the same launches as " + twin);
        if (!candidates_[i].disagreement) return;
        const std::string difference = candidates_[i].disagreement();
        if (!difference.empty()) put_out(i, "another result: " + difference);
      });
    }
    if (rivals() > 0) warm_up();
  }

  void run_first(size_t i) {
    if (options_.before_sample) options_.before_sample(0, 1);
    candidates_[i].run(0);
  }

  /// The first runs may have paid for compilation, so how long a run takes is seen in the second.
  void warm_up() {
    const double of_default = sample(0, 1);
    for (size_t i = 1; i < candidates_.size(); ++i) {
      if (!is_in(i)) continue;
      guarded(i, [&] {
        const double ms = sample(i, 1);
        if (ms <= options_.hopeless * of_default) return;
        put_out(i, cat("not measured: a run took ", ms / of_default, " times the default's"));
      });
    }
    if (rivals() == 0) samples_[0].push_back(of_default);  // with which all others were compared
    const double wanted = std::ceil(options_.least_sample_ms / std::max(of_default, 1e-6));
    repetitions_ = static_cast<int>(std::clamp(wanted, 1.0, double(options_.most_repetitions)));
  }

  /// Milliseconds of one run, as the mean of some on rotated buffers.
  double sample(size_t i, int repetitions) {
    check_interrupt();
    if (options_.before_sample) options_.before_sample(turn_ + 1, repetitions);
    const double ms = clock_.time_ms([&] {
      for (int r = 0; r < repetitions; ++r) candidates_[i].run(++turn_);
    });
    return ms / repetitions;
  }

  void choose_order() {
    for (size_t i = 0; i < candidates_.size(); ++i) {
      if (is_in(i)) order_.push_back(i);
    }
    while (needed_wins(rounds_, share_of_significance()) > rounds_ && rounds_ < kMostRounds) {
      ++rounds_;  // among many rivals even one that wins all rounds needs more of them
    }
    needed_ = needed_wins(rounds_, share_of_significance());
  }

  /// Every candidate that is compared might win by chance.
  double share_of_significance() const {
    return options_.significance / static_cast<double>(order_.size() - 1);
  }

  void round() {
    for (size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[random_() % i]);
    for (const size_t i : order_) {
      if (!is_in(i)) continue;
      if (i == 0) {
        samples_[0].push_back(sample(0, repetitions_));
      } else {
        guarded(i, [&] { samples_[i].push_back(sample(i, repetitions_)); });
      }
    }
    ++result_.rounds;
    for (size_t i = 1; i < candidates_.size(); ++i) {
      if (is_in(i)) count_win(i);
    }
  }

  /// A candidate that cannot win any more is not run again.
  void count_win(size_t i) {
    Measurement& measurement = result_.measurements[i];
    if (samples_[i].back() < samples_[0].back() * (1.0 - options_.least_gain)) ++measurement.wins;
    if (measurement.wins + rounds_ - result_.rounds < needed_) {
      put_out(i, cat("not faster: gained ", options_.least_gain * 100.0, " % in ", measurement.wins,
                     " of ", result_.rounds, " rounds, needed are ", needed_, " of ", rounds_));
    }
  }

  void choose() {
    for (size_t i = 0; i < candidates_.size(); ++i) {
      result_.measurements[i].median_ms = median(samples_[i]);
    }
    const double of_default = result_.measurements[0].median_ms;
    for (size_t i = 1; i < candidates_.size() && result_.rounds > 0; ++i) {
      Measurement& measurement = result_.measurements[i];
      if (!is_in(i)) continue;
      if (measurement.wins < needed_wins(result_.rounds, share_of_significance())) {
        put_out(i, cat("not measured often enough: ", result_.rounds, " rounds"));
        continue;
      }
      const double gain = 1.0 - measurement.median_ms / of_default;
      if (gain >= options_.least_gain && gain > result_.gain) {
        result_.winner = i;
        result_.gain = gain;
      }
    }
  }

  void put_out(size_t i, std::string why) { result_.measurements[i].why_out = std::move(why); }

  template <class Work>
  void guarded(size_t i, Work&& work) {
    try {
      work();
    } catch (const Interrupted&) {
      throw;
    } catch (const std::exception& error) {
      put_out(i, cat("failed: ", error.what()));
      if (is_late()) result_.is_complete = false;  // with more time it might have been right
    }
  }

  const std::vector<Candidate>& candidates_;
  Clock& clock_;
  const SearchOptions& options_;
  const double deadline_;
  std::vector<std::vector<double>> samples_;
  std::vector<size_t> order_;
  std::mt19937_64 random_{options_.seed};
  int64_t turn_ = 0;
  int repetitions_ = 1;
  int rounds_ = options_.rounds;
  int needed_ = 0;
  SearchResult result_;
};

}  // namespace

int needed_wins(int rounds, double significance) {
  double chance = 0.0;  // of at least `wins` wins
  double coefficient = 1.0;
  const double all = std::ldexp(1.0, rounds);
  for (int wins = rounds; wins >= 0; --wins) {
    chance += coefficient / all;
    if (chance > significance) return wins + 1;
    coefficient *= static_cast<double>(wins) / static_cast<double>(rounds - wins + 1);
  }
  return 0;
}

SearchResult search(const std::vector<Candidate>& candidates, Clock& clock,
                    const SearchOptions& options) {
  if (candidates.empty()) throw ExecutionError("tune: there is no candidate; needed is a default");
  if (options.rounds < 1) {
    throw ExecutionError(cat("tune: rounds is ", options.rounds, ", needed is 1 or more"));
  }
  return Search(candidates, clock, options).run();
}

std::vector<Measurement> not_measured(const std::vector<std::string>& names,
                                      const std::string& why) {
  std::vector<Measurement> all;
  for (const std::string& name : names) all.push_back({name, "not measured: " + why});
  return all;
}

std::string SearchResult::text() const {
  std::string text;
  for (size_t i = 0; i < measurements.size(); ++i) {
    const Measurement& m = measurements[i];
    text += m.name + ":";
    if (m.median_ms > 0.0) text += cat(' ', m.median_ms, " ms");
    if (!m.why_out.empty()) text += cat(' ', m.why_out);
    if (i == winner && i > 0)
      text += cat(", ", gain * 100.0, " % less than ", measurements[0].name);
    if (i == 0) text += " (default)";
    text += '\n';
  }
  return text;
}

}  // namespace cuop::tune
