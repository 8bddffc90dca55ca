// Enumerations whose values users name: an array of names, in the order of the values, is enough.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop {

/// The value of this name; nothing where there is none.
template <class Enum, size_t Count>
std::optional<Enum> find_name(const char* const (&names)[Count], std::string_view text) {
  for (size_t i = 0; i < Count; ++i) {
    if (text == names[i]) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

/// The same; ExecutionError "fft: norm 'both' is unknown; known are ...", `what` being "fft: norm".
template <class Enum, size_t Count>
Enum parse_name(std::string_view what, const char* const (&names)[Count], std::string_view text) {
  if (const auto found = find_name<Enum>(names, text)) return *found;
  throw ExecutionError(cat(what, " '", text, "' is unknown; known are ", join(names)));
}

}  // namespace cuop
