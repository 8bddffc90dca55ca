#include "cuop/tune/library_tuning.h"

#include <algorithm>

#include "cuop/core/text.h"
#include "cuop/tune/clock.h"
#include "cuop/tune/database.h"

namespace cuop::tune {

namespace {
thread_local LibraryTuning* innermost = nullptr;
}

LibraryTuning::LibraryTuning(int rounds, double seconds)
    : before_(innermost), rounds_(rounds), deadline_(HostClock().seconds() + seconds) {
  innermost = this;
}

LibraryTuning::~LibraryTuning() { innermost = before_; }

LibraryTuning* LibraryTuning::current() { return innermost; }

std::optional<size_t> LibraryTuning::search(Problem& problem) {
  using Source = Choosing::Source;
  if (!searched_.insert(problem.key).second) return std::nullopt;
  ChoiceOptions options;
  options.limits = {rounds_, deadline_ - HostClock().seconds()};
  options.is_asked = true;
  const Choosing chosen = choose_in_database(problem, options);
  const Finding& found = *chosen.found;
  text_ += cat(problem.key, "\n");
  if (chosen.source == Source::kPutOff) {
    text_ += cat("  not measured: ", found.why_unmeasured, "\n");
    measurements_.push_back(
        {"a library's algorithms", cat("not measured: ", found.why_unmeasured)});
    ++counts_.put_off;
    return std::nullopt;
  }
  if (chosen.source == Source::kDisk) {
    text_ += cat("  stored: ", found.value, "\n");
    measurements_.push_back({cat("a library's algorithm ", found.value), "not measured: stored"});
  }
  const bool is_made = chosen.source == Source::kMade;
  if (is_made) {
    text_ += found.text;
    measurements_.insert(measurements_.end(), found.measurements.begin(), found.measurements.end());
  }
  ++(is_made ? counts_.searched : counts_.stored);
  is_complete_ = is_complete_ && found.is_complete;
  if (fastest_.empty() || found.gain > gain_) {
    fastest_ = is_made ? found.measurements.at(found.winner).name : "stored";
  }
  gain_ = std::max(gain_, found.gain);
  made_in_ms_ += found.made_in_ms;
  return is_made ? std::optional(found.winner) : std::nullopt;
}

}  // namespace cuop::tune
