// What a library's plan of 1-D Fourier transforms is made for, on any device.
#pragma once

#include <compare>
#include <cstdint>

namespace cuop::backend {

enum class FftKind : uint8_t { kForward, kBackward, kRealForward, kRealBackward };

/// `batch` unscaled transforms of length `n` (the real side's length for the real kinds). A line's
/// elements are `in_stride` and `out_stride` apart, lines `in_distance` and `out_distance`, counted
/// in elements of their side's type.
struct FftPlanSpec {
  FftKind kind = FftKind::kForward;
  bool is_double = false;
  int64_t n = 1;
  int64_t batch = 1;
  int64_t in_distance = 1;
  int64_t out_distance = 1;
  int64_t in_stride = 1;
  int64_t out_stride = 1;
  auto operator<=>(const FftPlanSpec&) const = default;
};

}  // namespace cuop::backend
