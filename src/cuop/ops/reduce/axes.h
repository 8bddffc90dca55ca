// The axes of a reduction as an argument: nothing or {} for all of them, {0, 2}, a vector, an
// array, a span. Negative axes count from the back.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <span>

namespace cuop {

/// A view: it must not outlive the call it is passed to.
class Axes : public std::span<const int64_t> {
 public:
  Axes() = default;
  Axes(std::initializer_list<int64_t> axes) : std::span<const int64_t>(axes.begin(), axes.size()) {}
  template <class Range>
  requires std::convertible_to<const Range&, std::span<const int64_t>> Axes(const Range& axes)
      : std::span<const int64_t>(axes) {}
};

}  // namespace cuop
