// The sizes of a convolution as cuDNN takes them, and their hash.
#pragma once

#include <array>
#include <cstdint>

#include "cuop/core/dtype.h"
#include "cuop/core/hash.h"

namespace cuop::backend::cuda {

/// x [batch, in_channels, in...], w [out_channels, in_channels / groups, kernel...] and
/// y [batch, out_channels, out...], row-major; missing leading spatial axes have size 1. Nothing is
/// empty.
struct ConvShape {
  using Axes = std::array<int64_t, 3>;
  DType dtype = DType::kFloat32;
  int64_t batch = 0, in_channels = 0, out_channels = 0, groups = 1;
  Axes in{1, 1, 1}, kernel{1, 1, 1}, out{1, 1, 1};
  Axes stride{1, 1, 1}, padding{0, 0, 0}, dilation{1, 1, 1};
  bool has_bias = false;   ///< a bias [out_channels] is added
  bool has_relu = false;   ///< then 0 where the sum is negative; NaN stays
  bool adds_to_y = false;  ///< the result is added to what y holds
  bool operator==(const ConvShape&) const = default;
};

struct ConvShapeHash {
  size_t operator()(const ConvShape& s) const {
    const int64_t fields[] = {static_cast<int64_t>(s.dtype) * 8 + (s.has_relu ? 4 : 0) +
                                  (s.has_bias ? 2 : 0) + (s.adds_to_y ? 1 : 0),
                              s.batch, s.in_channels, s.out_channels, s.groups};
    const auto bytes = [](const auto& values) {
      return hash_text({reinterpret_cast<const char*>(&values), sizeof values});
    };
    uint64_t hash = bytes(fields);
    for (const auto* axes : {&s.in, &s.kernel, &s.out, &s.stride, &s.padding, &s.dilation}) {
      hash = hash * 31 + bytes(*axes);
    }
    return hash;
  }
};

}  // namespace cuop::backend::cuda
