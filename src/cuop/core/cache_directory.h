// Where things are kept between processes.
#pragma once

#include <string>

namespace cuop {

/// CUOP_CACHE_DIR, from the directory in which the process has begun, else the user's cache
/// directory (XDG) with /cuop.
std::string default_cache_directory();

/// Where what a thread's calls compile and choose is kept.
struct CachePlace {
  enum class Kind {
    kShared,   ///< where the process's settings say
    kNowhere,  ///< what is on disk is read, and nothing is written
    kOwn,      ///< in a directory of its own; what the shared place has is copied there
  };
  Kind kind = Kind::kShared;
  std::string directory = {};  ///< of kOwn
  bool operator==(const CachePlace&) const = default;
};

}  // namespace cuop
