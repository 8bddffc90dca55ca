// Building messages: cat("axis ", 3, " of ", shape).
#pragma once

#include <ostream>
#include <sstream>
#include <string>
#include <string_view>

namespace cuop {

/// Everything streamable, one after the other, as one string.
template <class... Parts>
std::string cat(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

/// "a, b, c" from any range of streamable elements.
template <class Range>
std::string join(const Range& range, const char* separator = ", ") {
  std::ostringstream out;
  const char* between = "";
  for (const auto& element : range) {
    out << between << element;
    between = separator;
  }
  return out.str();
}

}  // namespace cuop
