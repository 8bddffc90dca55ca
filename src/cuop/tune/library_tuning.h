// The choice among a library's own algorithms. Operators leave it to the library's ranking or to
// what was stored, unless their caller asks for a search by a scope.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cuop/core/device.h"
#include "cuop/tune/search.h"

namespace cuop::tune {

/// What a library offers for one problem.
struct LibraryProblem {
  std::string key;  ///< all that the choice depends on (tune/machine.h for the machine)
  std::vector<Candidate> candidates = {};  ///< the library's first choice first
  std::vector<std::string> values = {};    ///< what is stored for each of them
  std::function<void(size_t)> use = {};    ///< lets later calls take the candidate
  int most_repetitions = 1;                ///< sets of buffers that are rotated
  std::function<void(int64_t first_turn, int count)> before_sample = {};
};

/// While it lives, what operators of this thread leave to a library is searched for, once a
/// problem.
class LibraryTuning {
 public:
  LibraryTuning(int rounds, double seconds);
  ~LibraryTuning();
  LibraryTuning(const LibraryTuning&) = delete;
  LibraryTuning& operator=(const LibraryTuning&) = delete;

  /// The innermost one of this thread, null outside of any.
  static LibraryTuning* current();

  /// False for a problem that this scope has searched already, for which something of at least as
  /// many rounds is stored, or while nothing may be measured on the device (tune/permission.h).
  bool wants(const std::string& key, Device device);
  /// Searches, stores what was found and uses it.
  void search(const LibraryProblem& problem, Clock& clock);

  /// One line a candidate of each search: "" when there was none.
  const std::string& text() const { return text_; }
  /// The same as numbers.
  const std::vector<Measurement>& measurements() const { return measurements_; }
  /// Of the search with the largest gain: the part of the default's time that it saves.
  double gain() const { return gain_; }
  bool is_complete() const { return is_complete_; }
  /// That search's winner, "stored" for one that was read; "" when no library had a choice.
  const std::string& fastest() const { return fastest_; }
  /// Spent on the searches of this scope and, before it, on the choices that it found stored.
  double made_in_ms() const { return made_in_ms_; }

  /// Problems that were searched for, that had a stored choice, and that were left as they are.
  struct Counts {
    int searched = 0, stored = 0, put_off = 0;
  };
  const Counts& counts() const { return counts_; }

 private:
  void note(double gain, const std::string& fastest, double made_in_ms);

  LibraryTuning* const before_;
  const int rounds_;
  const double deadline_;
  std::set<std::string> searched_;
  std::string text_;
  std::vector<Measurement> measurements_;
  double gain_ = 0.0;
  bool is_complete_ = true;
  std::string fastest_;
  double made_in_ms_ = 0.0;
  Counts counts_;
};

}  // namespace cuop::tune
