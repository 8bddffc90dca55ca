#include "cuop/tune/library_tuning.h"

#include <algorithm>

#include "cuop/core/log.h"
#include "cuop/core/text.h"
#include "cuop/tune/database.h"
#include "cuop/tune/permission.h"

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

bool LibraryTuning::wants(const std::string& key, Device device) {
  if (!searched_.insert(key).second) return false;
  const auto stored = stored_choice(key);
  if (stored && stored->rounds >= rounds_) {
    text_ += cat(key, "\n  stored: ", stored->value, "\n");
    measurements_.push_back({cat("a library's algorithm ", stored->value), "not measured: stored"});
    note(stored->gain, "stored", stored->made_in_ms);
    ++counts_.stored;
    return false;
  }
  const std::string obstacle = measuring_obstacle(device, true);
  if (obstacle.empty()) return true;
  text_ += cat(key, "\n  not measured: ", obstacle, "\n");
  measurements_.push_back({"a library's algorithms", cat("not measured: ", obstacle)});
  ++counts_.put_off;
  return false;
}

void LibraryTuning::note(double gain, const std::string& fastest, double made_in_ms) {
  if (fastest_.empty() || gain > gain_) fastest_ = fastest;
  gain_ = std::max(gain_, gain);
  made_in_ms_ += made_in_ms;
}

void LibraryTuning::search(const LibraryProblem& problem, Clock& clock) {
  HostClock host;
  const double start = host.seconds();
  SearchOptions options;
  options.rounds = rounds_;
  options.seconds = deadline_ - start;
  options.most_repetitions = problem.most_repetitions;
  options.before_sample = problem.before_sample;
  const SearchResult found = tune::search(problem.candidates, clock, options);
  text_ += cat(problem.key, "\n", found.text());
  measurements_.insert(measurements_.end(), found.measurements.begin(), found.measurements.end());
  log(LogLevel::kDebug, "tune: ", problem.key, "\n", found.text());
  is_complete_ = is_complete_ && found.is_complete;
  const double took_ms = (host.seconds() - start) * 1e3;
  note(found.gain, problem.candidates[found.winner].name, took_ms);
  ++counts_.searched;
  if (found.is_complete) {
    store_choice(problem.key, {problem.values[found.winner], took_ms, found.gain, rounds_});
  }
  problem.use(found.winner);
}

}  // namespace cuop::tune
