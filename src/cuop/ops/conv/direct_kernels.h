// Internal: the inner loop of the direct convolution, compiled for each instruction set.
#pragma once

#include <cstdint>
#include <tuple>

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

template <class T>
using DirectKernel = void (*)(const DirectCall<T>&);

/// Integers are unsigned here (ops/arithmetic.h).
using DirectKernels =
    std::tuple<DirectKernel<uint8_t>, DirectKernel<uint16_t>, DirectKernel<uint32_t>,
               DirectKernel<uint64_t>, DirectKernel<float>, DirectKernel<double>>;
template <class Level>
const DirectKernels& direct_kernels();

}  // namespace cuop::kernels
