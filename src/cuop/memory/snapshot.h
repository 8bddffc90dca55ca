// A pool's snapshot as files: JSON for programs, one self-contained HTML page for people.
#pragma once

#include <string>
#include <utility>

#include "cuop/core/device.h"

namespace cuop::memory {

struct PoolSnapshot;

/// Device, statistics, segments with their blocks, and the history, as one JSON object. Sizes in
/// bytes, times in seconds.
std::string to_json(const PoolSnapshot& snapshot);
/// A page with the time line of live and reserved bytes, the segments and the largest blocks. It
/// loads nothing from anywhere.
std::string to_html(const PoolSnapshot& snapshot);

/// Writes both, as `path` with .json and .html instead of either ending; returns the two names.
/// ExecutionError when a file cannot be written.
std::pair<std::string, std::string> write_snapshot(const PoolSnapshot& snapshot,
                                                   const std::string& path);

/// The same of the device's pool as it is now; ExecutionError when its memory is none.
std::pair<std::string, std::string> write_snapshot(Device device, const std::string& path);

}  // namespace cuop::memory
