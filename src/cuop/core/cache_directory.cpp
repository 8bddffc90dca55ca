#include "cuop/core/cache_directory.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
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
    // A relative one is to be ignored: https://specifications.freedesktop.org/basedir-spec
    if (base != nullptr && *base == '/') return (fs::path(base) / below).string();
  }
  return (fs::temp_directory_path() / cat("cuop-", getuid())).string();
}

}  // namespace cuop
