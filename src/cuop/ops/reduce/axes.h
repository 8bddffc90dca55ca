// The axes of a reduction as an argument: nothing or {} for all of them, {0, 2}, a vector, an
// array, a span, or Axes::none(). Negative axes count from the back.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

namespace cuop {

/// As a value that can be kept: all axes, or those that are given.
class ReduceAxes {
 public:
  ReduceAxes() = default;
  ReduceAxes(std::vector<int64_t> axes) : values_(std::move(axes)) {}
  ReduceAxes(std::initializer_list<int64_t> axes) : values_(axes) {}
  /// See Axes.
  static ReduceAxes exactly(std::vector<int64_t> axes) {
    ReduceAxes result(std::move(axes));
    result.are_none_ = result.values_.empty();
    return result;
  }

  bool are_none() const { return are_none_; }
  const std::vector<int64_t>& values() const { return values_; }

 private:
  std::vector<int64_t> values_;
  bool are_none_ = false;
};

/// A view: it must not outlive the call it is passed to.
class Axes : public std::span<const int64_t> {
 public:
  Axes() = default;
  Axes(std::initializer_list<int64_t> axes) : std::span<const int64_t>(axes.begin(), axes.size()) {}
  template <class Range>
  requires std::convertible_to<const Range&, std::span<const int64_t>> Axes(const Range& axes)
      : std::span<const int64_t>(axes) {}
  Axes(const ReduceAxes& axes)
      : std::span<const int64_t>(axes.values()), are_none_(axes.are_none()) {}
  /// No axis: each element is reduced alone, and `keepdims` says nothing.
  static Axes none() {
    Axes axes;
    axes.are_none_ = true;
    return axes;
  }
  /// These: none where the list is empty.
  static Axes exactly(std::span<const int64_t> axes) { return axes.empty() ? none() : Axes(axes); }

  bool are_none() const { return are_none_; }

 private:
  bool are_none_ = false;
};

}  // namespace cuop
