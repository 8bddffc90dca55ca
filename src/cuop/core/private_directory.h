// A directory of this user's alone, held open. Whoever can write to a directory on the way to it,
// or made a link on that way, could put another directory in its place: such a way is not taken.
// What is done to files is done below the open directory, so that nothing can be put in its place
// later.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cuop/core/descriptor.h"

namespace cuop {

class PrivateDirectory {
 public:
  enum class Missing { kLeave, kMake };
  /// Every directory and link from the root on must belong to this user or to root, and no other
  /// user may write to it, sticky directories (as /tmp) excepted; the last must be this user's.
  /// What is missing is made, for this user alone, when that is asked for.
  static PrivateDirectory open(const std::string& path, Missing missing);

  bool is_open() const { return directory_.is_open(); }
  /// Why it cannot be used; "" for one that can be, and for one that does not exist.
  const std::string& problem() const { return problem_; }
  int descriptor() const { return directory_.get(); }

  struct File {
    std::string name;
    int64_t used_ns = 0;  ///< when it was last used, since 1970
    int64_t bytes = 0;
  };
  /// This user's files called "<hexadecimal digits><ending>" that begin with `header`; for an empty
  /// header those that are empty. Everything else in the directory is somebody else's.
  struct Kind {
    std::string_view ending, header;
  };
  /// The files of these kinds, the one that was not used for the longest time first.
  std::vector<File> files(std::span<const Kind> kinds) const;
  /// Removes what processes that were killed `age` ago while they wrote such files have left, and
  /// nothing that is being written.
  void remove_unfinished(std::span<const Kind> kinds, std::chrono::seconds age) const;

  static constexpr int64_t kMostBytes = int64_t{1} << 28;  ///< of a file that is read
  enum class ReadStatus { kAbsent, kRefused, kRead };
  /// The content of a file that only this user can write to; refused is also what is no ordinary
  /// file or too large.
  ReadStatus read(const std::string& name, std::string& content) const;
  /// As of now, whatever the file is.
  void mark_used(const std::string& name) const;
  /// Written under another name and renamed, so that it is there whole or not at all. False leaves
  /// the reason in errno: ENOENT when somebody has removed the file, or the directory, meanwhile.
  bool write(const std::string& name, std::string_view content) const;
  bool contains(const std::string& name) const;
  bool remove(const std::string& name) const;

 private:
  enum class State { kWhole, kUnfinished };
  std::vector<File> find(std::span<const Kind> kinds, State state) const;

  Descriptor directory_;
  std::string problem_;
};

}  // namespace cuop
