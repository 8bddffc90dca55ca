// A convolution as cuDNN takes it, and its hash.
#pragma once

#include <cstdint>

#include "cuop/backend/conv_geometry.h"
#include "cuop/core/dtype.h"
#include "cuop/core/hash.h"

namespace cuop::backend::cuda {

/// Tensors are row-major, nothing is empty.
struct ConvShape : ConvGeometry {
  DType dtype = DType::kFloat32;
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
