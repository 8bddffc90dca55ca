// What was found out by measuring, kept on disk for the next process: one small checksummed file a
// choice, in a directory of the user's. The store never makes a call fail: a file that is damaged,
// of another version or of another question counts as absent.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

namespace cuop::tune {

struct Choice {
  std::string value;
  double made_in_ms = 0.0;  ///< what finding it cost
};

class ChoiceStore {
 public:
  /// The directory is made on the first save. Beyond `max_bytes` the files that were not used for
  /// the longest time are removed.
  ChoiceStore(std::string directory, int64_t max_bytes);

  std::optional<Choice> load(const std::string& key);
  /// Written under a temporary name and renamed, so that readers never see half a file.
  void save(const std::string& key, const Choice& choice);
  /// Removes every choice; answers how many there were.
  int64_t clear();

  const std::string& directory() const { return directory_; }
  /// Where a choice is or would be kept.
  std::string path(const std::string& key) const;
  /// Files that were there but could not be used.
  int64_t damaged_count() const { return damaged_; }
  /// "" when the directory can be used, else why not (it then acts as if it were empty).
  std::string problem() const;

 private:
  void evict();

  std::string directory_;
  int64_t max_bytes_;
  std::atomic<int64_t> damaged_ = 0;
  std::atomic<bool> has_warned_ = false;
};

}  // namespace cuop::tune
