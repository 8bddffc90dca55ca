// The places of the keys of a short line among each other, by comparing each with all others:
// vectors do that without a branch, of which a sort guesses half wrongly.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuop/backend/cpu/isa.h"

namespace cuop::kernels {

/// Keys of a line up to which that is the quickest way.
template <class Key>
inline constexpr size_t kRankedLine = sizeof(Key) == 8 ? 100 : 200;

/// ranks[i]: how many keys are smaller than keys[i], or equal and before it. Keys are unsigned, and
/// at most kRankedLine.
template <class Level, class Key>
void rank_keys(const Key* keys, int64_t count, Key* ranks);

/// That of the instruction set in use.
template <class Key>
auto* rank_keys_in_use() {
  using Kernel = void(const Key*, int64_t, Key*);
  static Kernel* const chosen =
      isa::choose([]<class Level>(Level) -> Kernel* { return &rank_keys<Level, Key>; });
  return chosen;
}

}  // namespace cuop::kernels
