// Files that appear complete under their name or not at all.
#pragma once

#include <string>
#include <string_view>

#include "cuop/core/descriptor.h"
#include "cuop/core/noncopyable.h"

namespace cuop {

/// The bytes go to a file beside the named one, which takes its name when they are complete. What
/// is under that name before stays there until then, and its permissions pass on; a link stays a
/// link, and what it leads to is replaced. ExecutionError, begun with `who`, for every failure.
class FileReplacement : NonCopyable {
 public:
  FileReplacement(std::string who, const std::string& path);
  /// Removes what was not finished.
  ~FileReplacement();

  void write(std::string_view bytes);
  /// Forces the bytes to the disk and gives the file its name.
  void commit();

 private:
  [[noreturn]] void fail(const std::string& why) const;
  [[noreturn]] void fail() const;
  void find_target();
  void pass_on_permissions() const;

  const std::string who_, asked_;
  std::string target_, temporary_;
  bool is_replacing_ = false;
  Descriptor file_;
};

}  // namespace cuop
