#include "cuop/core/cache_directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "cuop/core/env.h"
#include "cuop/core/text.h"

namespace cuop {

namespace fs = std::filesystem;

std::string default_cache_directory() {
  const std::string& asked = env().cache_dir.value;
  if (!asked.empty()) return asked;
  for (const auto& [variable, below] :
       {std::pair{"XDG_CACHE_HOME", "cuop"}, std::pair{"HOME", ".cache/cuop"}}) {
    const char* base = std::getenv(variable);
    if (base != nullptr && *base != '\0') return (fs::path(base) / below).string();
  }
  return (fs::temp_directory_path() / cat("cuop-", getuid())).string();
}

std::string directory_problem(const std::string& directory) {
  struct stat status {};
  if (stat(directory.c_str(), &status) != 0) return "";
  if (!S_ISDIR(status.st_mode)) return cat(directory, " is not a directory");
  if (status.st_uid != geteuid()) return cat(directory, " belongs to another user");
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return cat(directory, " can be written by other users; chmod go-w makes it usable");
  }
  return "";
}

std::string make_private_directory(const std::string& directory) {
  std::error_code error;
  const fs::path path(directory);
  if (path.has_parent_path()) fs::create_directories(path.parent_path(), error);
  if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    return cat(directory, " cannot be made: ", std::generic_category().message(errno));
  }
  return directory_problem(directory);
}

}  // namespace cuop
