// What a library's plan of 1-D Fourier transforms is made for, on any device.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuop/core/hash.h"

namespace cuop::backend {

enum class TransformKind : uint8_t { kForward, kBackward, kRealForward, kRealBackward };

/// `batch` unscaled transforms of length `n` (the real side's length for the real kinds). A line's
/// elements are `in_stride` and `out_stride` apart, lines `in_distance` and `out_distance`, counted
/// in elements of their side's type.
struct FftPlanSpec {
  TransformKind kind = TransformKind::kForward;
  bool is_double = false;
  int64_t n = 1;
  int64_t batch = 1;
  int64_t in_distance = 1;
  int64_t out_distance = 1;
  int64_t in_stride = 1;
  int64_t out_stride = 1;
  bool operator==(const FftPlanSpec&) const = default;
};
struct FftPlanSpecHash {
  size_t operator()(const FftPlanSpec& s) const {
    return hash_numbers(s.kind, s.is_double, s.n, s.batch, s.in_distance, s.out_distance,
                        s.in_stride, s.out_stride);
  }
};

}  // namespace cuop::backend
