// Spans in the format that chrome://tracing and Perfetto read.
#pragma once

#include <string>
#include <vector>

#include "cuop/core/trace.h"

namespace cuop::trace {

/// The events in Chrome's trace-event format: a process a rank, in it a track for each thread of
/// the host and each stream of a GPU, and counters of what moves and is computed at each moment
/// ("GB/s", "GFLOP/s"), summed over the outermost spans that know their bytes and operations.
std::string to_chrome_json(const std::vector<Event>& events);

}  // namespace cuop::trace
