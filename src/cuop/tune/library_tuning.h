// The choice among a library's own algorithms. Operators leave it to the library's ranking or to
// what was stored, unless their caller asks for a search by a scope.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cuop/core/noncopyable.h"
#include "cuop/tune/tuner.h"

namespace cuop::tune {

/// While it lives, what operators of this thread leave to a library is searched for, once a
/// problem.
class LibraryTuning : NonCopyable {
 public:
  LibraryTuning(int rounds, double seconds);
  ~LibraryTuning();

  /// The innermost one of this thread, null outside of any.
  static LibraryTuning* current();

  /// Searches for the problem's fastest candidate, stores it and returns its place, for later calls
  /// to take. Nothing for a problem that this scope has had already, for which something of at
  /// least as many rounds is stored, or while nothing may be measured on the device
  /// (tune/permission.h): later calls are served as before.
  std::optional<size_t> search(Problem& problem);

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
