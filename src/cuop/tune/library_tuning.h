// The choice among a library's own algorithms. Operators leave it to the library's ranking or to
// what was stored, unless their caller asks for a search by a scope.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

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

  /// False for a problem that this scope has searched already, or for which something of at least
  /// as many rounds is stored.
  bool wants(const std::string& key);
  /// Searches, stores what was found and uses it.
  void search(const LibraryProblem& problem, Clock& clock);

  /// One line a candidate of each search: "" when there was none.
  const std::string& text() const { return text_; }
  /// Of the search with the largest gain: the part of the default's time that it saves.
  double gain() const { return gain_; }
  bool is_complete() const { return is_complete_; }

 private:
  LibraryTuning* const before_;
  const int rounds_;
  const double deadline_;
  std::set<std::string> searched_;
  std::string text_;
  double gain_ = 0.0;
  bool is_complete_ = true;
};

}  // namespace cuop::tune
