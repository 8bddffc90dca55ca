// Small files that one process keeps for the next, in a private directory of bounded size.
//
// A file is there whole or not at all, and one that another user could have written (by its owner,
// its permissions, or as a link) is not believed. What the files hold, and how damage to it shows,
// is the business of whoever keeps them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cuop/core/fork_mutex.h"
#include "cuop/core/noncopyable.h"
#include "cuop/core/private_directory.h"

namespace cuop {

struct FileStoreOptions {
  std::string path;
  int64_t max_bytes = 0;   ///< beyond it the files that were not used for the longest time go
  double kept_part = 1.0;  ///< of max_bytes, what is left then: room until the next time
  /// What is written, kept and removed; the first is that of entries, the others lie beside them.
  std::vector<PrivateDirectory::Kind> kinds;
  /// Called with the path of each file that was there but could not be used.
  std::function<void(const std::string& file)> on_damage = {};
};

class FileStore {
 public:
  using Missing = PrivateDirectory::Missing;

  explicit FileStore(FileStoreOptions options) : options_(std::move(options)) {}

  const std::string& path() const { return options_.path; }
  PrivateDirectory open(Missing missing) const {
    return PrivateDirectory::open(options_.path, missing);
  }
  /// "" when the directory can be trusted and written to, or made where it is missing, else why
  /// not; one that cannot be trusted acts as if it were empty. Nothing that is made to see it
  /// stays.
  std::string problem() const;

  /// Puts the content under the name in the directory, which is made if it is missing; returns ""
  /// or why it could not be written.
  std::string write(const std::string& name, std::string_view content);

  /// What `decode` makes of the file's content, an optional. Nothing when there is no such file or,
  /// which is counted as damage, when it cannot be trusted or `decode` returns nothing.
  template <class Decode>
  auto load(const PrivateDirectory& directory, const std::string& name, const Decode& decode) {
    std::string content;
    const auto status = directory.read(name, content);
    const bool is_read = status == PrivateDirectory::ReadStatus::kRead;
    auto result = is_read ? decode(content) : std::nullopt;
    if (result) {
      directory.mark_used(name);
    } else if (status != PrivateDirectory::ReadStatus::kAbsent) {
      note_damage(name);
    }
    return result;
  }
  /// Shows every entry that can be trusted, the last used first. That does not count as use.
  void visit(const std::function<void(const PrivateDirectory::File& file,
                                      const std::string& content)>& look) const;

  /// Removes all files and what killed processes left, and nothing of others; returns how many
  /// entries there were.
  int64_t clear();

  int64_t damaged_count() const { return damaged_; }
  int64_t evicted_count() const { return evicted_; }

 private:
  std::string obstacle() const;
  void note_damage(const std::string& name);
  void evict(const PrivateDirectory& directory, int64_t added);

  const FileStoreOptions options_;
  std::atomic<int64_t> damaged_ = 0, evicted_ = 0;
  ForkMutex size_mutex_;
  int64_t size_ = -1;  // of all files as far as this process knows; -1 before it looked
  int writes_ = 0;
};

/// The right to make one file, held by one thread of one process at a time. The lock belongs to the
/// open file, so the system takes it back from a process that ends in whatever way.
class FileLock : NonCopyable {
 public:
  static constexpr PrivateDirectory::Kind kKind{".lock", ""};

  /// Does not lock yet. The directory must outlive this.
  FileLock(const PrivateDirectory& directory, std::string name)
      : directory_(directory), name_(std::move(name)) {}
  /// Removes the file, before the lock goes, so that nobody gets it on a removed file.
  ~FileLock();

  enum class State { kMine, kTaken, kUnsupported };
  State attempt();

 private:
  const PrivateDirectory& directory_;
  const std::string name_;
  Descriptor file_;
};

}  // namespace cuop
