// Internal: checks of the sizes that operators are constructed with.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>

#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop {

/// Images are counted in 32 bits by the libraries that work on them.
inline constexpr int64_t kMostOfAnImage = std::numeric_limits<int32_t>::max();

struct SizeOption {
  const char* name;
  int64_t value;
  int64_t least;
};
/// ShapeError "who: pad_h is -1, needed is 0 to 2147483647" for the first option out of its range.
inline void check_sizes(const std::string& who, std::initializer_list<SizeOption> options) {
  for (const SizeOption& option : options) {
    if (option.value >= option.least && option.value <= kMostOfAnImage) continue;
    throw ShapeError(cat(who, ": ", option.name, " is ", option.value, ", needed is ", option.least,
                         " to ", kMostOfAnImage));
  }
}

}  // namespace cuop
