// The way to a directory, followed step by step, so that no other user can lead it elsewhere.
#pragma once

#include <string>

#include "cuop/core/descriptor.h"

namespace cuop {

/// Whether users besides the owner may write to what has this mode.
bool is_writable_by_others(unsigned mode);
/// Ends "/the/directory ...".
inline constexpr const char* kWritableByOthers =
    " can be written by other users; chmod go-w makes it usable";

struct TrustedPath {
  Descriptor directory;  ///< opened with O_PATH; not open when it is missing or must not be taken
  std::string problem;   ///< why it must not be taken; "" when it is merely missing
};

/// Follows a path from the root. Each directory and each link on it must belong to this user or to
/// root; a directory that others can write to must be sticky, since they cannot replace in it what
/// is not theirs. Missing directories are made when that is asked for, for this user alone.
TrustedPath follow_trusted_path(const std::string& path, bool makes_missing);

}  // namespace cuop
