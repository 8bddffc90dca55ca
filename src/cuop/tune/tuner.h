// The choice between several ways to do one piece of work: remembered by the process, kept on disk,
// or found out by measuring. Kernels of operators, algorithms of libraries and configurations of
// users' kernels are all chosen here.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cuop/core/device.h"
#include "cuop/core/lru_cache.h"
#include "cuop/tune/choice_store.h"
#include "cuop/tune/search.h"

namespace cuop::tune {

/// What was chosen, and why.
struct Finding {
  std::string value;
  size_t winner = 0;        ///< place of the value among the problem's
  double gain = 0.0;        ///< part of the default's time that it saves
  double made_in_ms = 0.0;  ///< what finding it cost
  int rounds = 0;           ///< that were asked for
  bool is_complete = true;  ///< false: chosen for want of time, so not worth keeping on disk
  std::string why_unmeasured = {};             ///< why nothing was measured, "" when something was
  std::string text = {};                       ///< what was measured, one line a candidate
  std::vector<Measurement> measurements = {};  ///< the same as numbers
  std::string stored_in = {};                  ///< the directory that has it too
};
Finding finding_of(SearchResult&& result);

struct Problem {
  std::string key;                       ///< all that the choice depends on (tune/machine.h)
  Device device = kCpu;                  ///< that is measured on
  std::vector<std::string> values = {};  ///< what is kept for each candidate, the default first
  /// Measures: the winner, its gain, text and measurements. `values` may be filled only then.
  std::function<Finding(const SearchLimits&)> search = {};
  std::string why_default = {};  ///< the default is taken unmeasured for this reason, if any
};

/// What a process remembers, by the problems' keys.
using Findings = SharedLruCache<std::string, std::shared_ptr<const Finding>>;
inline constexpr size_t kMostFindings = size_t{1} << 16;

struct ChoiceOptions {
  SearchLimits limits{};
  bool is_asked = false;         ///< measure on a busy device too
  std::string obstacle = {};     ///< why nothing may be measured now, beside tune/permission.h's
  int most_measuring = 0;        ///< threads of the process that may at a time; 0: any number
  Findings* memory = nullptr;    ///< where the process remembers, if anywhere
  ChoiceStore* store = nullptr;  ///< the same for the disk
  bool is_read_only = false;     ///< nothing is written there
  ChoiceStore* log_store = nullptr;  ///< where what was measured is written, if anywhere
};

struct Choosing {
  /// kPutOff: the default, because nothing may be measured now (tune/permission.h).
  enum class Source { kMade, kMemory, kDisk, kPutOff };
  std::shared_ptr<const Finding> found;
  Source source = Source::kMade;
  bool is_refused = false;  ///< something was kept on disk that is no candidate any more
};

/// What was found in fewer rounds than are asked for now does not count. Waiting for a turn to
/// measure and measuring take `limits.seconds` together, beyond the run that is going on then. What
/// was put off is not remembered.
Choosing choose(Problem& problem, const ChoiceOptions& options);

}  // namespace cuop::tune
