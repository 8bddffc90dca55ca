// A rank's recorded events as bytes and back.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cuop/core/trace.h"

namespace cuop::dist {

/// Names and the words of plans are cut at this length.
inline constexpr size_t kLongestText = 1000;

struct SentEvents {
  std::vector<trace::Event> events = {};  ///< with the times of their rank
  int64_t left_out = 0;
};

/// Distributed calls and the longest of the other events, so many at most and in so many bytes, in
/// the order in which they were given, and how many were left out.
std::string write_events(const std::vector<trace::Event>& events, int64_t most_events,
                         int64_t most_bytes);
/// What another rank has written. The detail of a distributed call is a CallFigures.
/// CommunicationError unless it is all of such a message, with finite figures.
SentEvents read_events(std::string_view bytes, int64_t most_events);

}  // namespace cuop::dist
