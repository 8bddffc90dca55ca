// Internal: the inner loop of the direct convolution, compiled for each instruction set.
#pragma once

#include <cstdint>

namespace cuop::kernels {

/// Rows that one call computes side by side.
inline constexpr int kDirectRows = 4;
/// Elements past the end of the packed image that a call may read.
inline constexpr int64_t kDirectSlack = 64;

/// For each of `rows` (1 or kDirectRows) output rows r and each i below `width`:
/// out[r][i] = bias[r] + sum over t below `taps` of weights[r][t] * packed[offsets[t] + i].
template <class T>
struct DirectCall {
  int rows;
  int64_t taps, width;
  const T* packed;
  const int64_t* offsets;
  const T* weights[kDirectRows];
  T bias[kDirectRows];
  T* out[kDirectRows];
};

struct DirectKernels {
  void (*f32)(const DirectCall<float>&);
  void (*f64)(const DirectCall<double>&);
};
template <class Level>
const DirectKernels& direct_kernels();

}  // namespace cuop::kernels
