// Spans in the format that chrome://tracing and Perfetto read.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cuop/core/trace.h"

namespace cuop::trace {

/// The events in Chrome's trace-event format: a process a rank, in it a track for each thread of
/// the host and each stream of a GPU, and counters of what moves and is computed at each moment
/// ("GB/s", "GFLOP/s"), summed over the outermost spans that know their bytes and operations. A
/// rank's label stands beside its name.
std::string to_chrome_json(const std::vector<Event>& events,
                           const std::map<int, std::string>& labels = {});

}  // namespace cuop::trace
