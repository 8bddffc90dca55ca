// Where things are kept between processes, and whether a directory may be trusted.
#pragma once

#include <string>

namespace cuop {

/// CUOP_CACHE_DIR, else the user's cache directory (XDG) with /cuop.
std::string default_cache_directory();

/// Why what lies in the directory must not be believed: it is none, belongs to another user, or
/// others can write to it. "" for a directory of this user's alone, and for one that does not
/// exist.
std::string directory_problem(const std::string& directory);

/// Makes the directory, readable by this user only, where it is missing; answers why it cannot be
/// used, or "".
std::string make_private_directory(const std::string& directory);

}  // namespace cuop
