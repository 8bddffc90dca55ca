// A box that one rank has and several others need: sent to each of them it takes the owner's link
// as many times. Sent in parts, of which each of them gets one and passes it on to the others, it
// takes the owner's link once, and theirs not quite once, at the same time.
//
// Worked example: rank 0 has [0:6, 0:8] and ranks 1, 2 and 3 need it all. They get [0:2, 0:8],
// [2:4, 0:8] and [4:6, 0:8], 48 elements instead of 144 over the link of rank 0; then each receives
// 32 from the two others.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "cuop/core/box.h"

namespace cuop::dist {

struct Relay {
  std::vector<Box> first;   ///< what each rank gets from the owner
  std::vector<Box> parts;   ///< of those the ones that are passed on; empty boxes elsewhere
  std::vector<Box> shared;  ///< what they are passed on for; empty boxes elsewhere
};

/// How ranks get `boxes` so; nothing where the elements do not lie on one rank, where no two others
/// need the same box of at least one index for each of them along some axis, or where different
/// boxes overlap.
std::optional<Relay> relay_of(std::span<const Box> owners, std::span<const Box> boxes);

}  // namespace cuop::dist
