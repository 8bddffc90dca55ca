// How many ranks there can be, for everything that keeps something for each of them: communicators,
// meshes and planners.
#pragma once

#include <cstdint>
#include <string_view>

#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop::dist {

/// More than a system gives a process threads, and with plans of some MB. `MOST_RANKS` in Python.
inline constexpr int kMostRanks = 1 << 15;

/// `count`, which the argument `name` of `who` has given; ExecutionError unless it is 1 to
/// kMostRanks.
inline int checked_ranks(int64_t count, std::string_view who, std::string_view name = "ranks") {
  if (count >= 1 && count <= kMostRanks) return static_cast<int>(count);
  throw ExecutionError(
      cat(who, ": ", count, " ", name, " were given; needed are 1 to ", kMostRanks));
}

}  // namespace cuop::dist
