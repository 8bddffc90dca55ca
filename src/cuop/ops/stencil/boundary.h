// What a stencil reads beyond the edges of its grid.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace cuop {

/// What lies outside the grid: zeros, or the opposite side.
enum class Boundary : uint8_t { kZero, kPeriodic };
/// "zero" or "periodic"; ExecutionError otherwise.
Boundary parse_boundary(std::string_view text, const char* who);

/// Rows of a grid that are swept several times at once.
struct RowSweeps {
  int64_t sweeps = 1;
  /// The rows that the grid has, counted from the result's first row: those outside of
  /// [first, last) are zero before each sweep. Unbounded where there are none.
  int64_t first = INT64_MIN, last = INT64_MAX;
  /// The norms of Jacobi's sweeps are of columns [first_column, last_column) alone.
  int64_t first_column = 0, last_column = INT64_MAX;
  /// How many of Jacobi's sweeps, the last ones, leave norms; all where it is more than there are.
  int64_t measured = INT64_MAX;
  /// Only columns [first_made, last_made) of the result are made; the others keep what they hold.
  int64_t first_made = 0, last_made = INT64_MAX;

  int64_t sweeps_measured() const { return std::clamp<int64_t>(measured, 0, sweeps); }
  /// The columns of a result of `width` that are made: [begin, end), which may be none.
  int64_t made_begin(int64_t width) const { return std::clamp<int64_t>(first_made, 0, width); }
  int64_t made_end(int64_t width) const {
    return std::clamp<int64_t>(last_made, made_begin(width), width);
  }
};

}  // namespace cuop
