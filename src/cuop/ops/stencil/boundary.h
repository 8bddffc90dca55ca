// What a stencil reads beyond the edges of its grid.
#pragma once

#include <cstdint>
#include <string_view>

namespace cuop {

/// What lies outside the grid: zeros, or the opposite side.
enum class Boundary : uint8_t { kZero, kPeriodic };
/// "zero" or "periodic"; ExecutionError otherwise.
Boundary parse_boundary(std::string_view text, const char* who);

}  // namespace cuop
