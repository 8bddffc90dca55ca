// Where things are kept between processes.
#pragma once

#include <string>

namespace cuop {

/// CUOP_CACHE_DIR, else the user's cache directory (XDG) with /cuop.
std::string default_cache_directory();

}  // namespace cuop
