// What was found out by measuring, kept on disk for the next process: one small checksummed file a
// choice, in a directory of the user's. The store never makes a call fail: a file that is damaged,
// of another version or of another question counts as absent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cuop/core/file_store.h"

namespace cuop::tune {

struct Choice {
  std::string value;
  double made_in_ms = 0.0;  ///< what finding it cost
  double gain = 0.0;        ///< part of the default's time that it saves
  int rounds = 0;           ///< samples of each candidate
};

class ChoiceStore {
 public:
  struct Entry {
    std::string key;
    Choice choice;
    int64_t used = 0;  ///< seconds since 1970
  };

  /// The directory is made on the first save. Beyond `max_bytes` the files that were not used for
  /// the longest time are removed.
  ChoiceStore(std::string directory, int64_t max_bytes);

  std::optional<Choice> load(const std::string& key);
  /// Written under a temporary name and renamed, so that readers never see half a file.
  void save(const std::string& key, const Choice& choice);
  /// Keeps a text for people beside the choice, in the place of an earlier one. Logs count towards
  /// the size and go like choices.
  void save_log(const std::string& key, const std::string& text);
  /// All that can be used, the last used first.
  std::vector<Entry> entries() const;
  /// Removes every choice and log; returns how many choices there were. Files of others stay, as
  /// they do when the store grows too large.
  int64_t clear() { return files_.clear(); }

  const std::string& directory() const { return files_.path(); }
  /// Where a choice is or would be kept.
  std::string path(const std::string& key) const;
  /// Files that were there but could not be used; the first of a process is said on stderr.
  int64_t damaged_count() const { return files_.damaged_count(); }
  /// "" when the directory can be trusted, else why not (it then acts as if it were empty).
  std::string problem() const { return files_.problem(); }
  /// Makes the directory, for its owner alone, if it is not there; returns "" or why it can be
  /// neither made nor written to. Warns when it cannot be trusted.
  std::string make_directory() const;

 private:
  /// Once a directory and process: many wrappers share one. "" is nothing to warn of.
  void warn(const std::string& why) const;

  FileStore files_;
};

}  // namespace cuop::tune
