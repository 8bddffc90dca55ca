// Convolution without gathering patches. A thread has one output position and several channels, for
// which it reads each element of x once; the channels' weights, and where each of them meets x, are
// in shared memory, a piece at a time.
#pragma once

#include "cuop/jit/kernels/product_sum.cuh"
#include "cuop/jit/kernels/rectifier.h"
#include "cuop/ops/conv/conv_arguments.cuh"

namespace cuop::jit {

/// Weights of a channel that are in shared memory at a time.
inline constexpr int kConvTaps = 128;
static_assert(kConvTaps <= kConvThreads, "each tap of a piece has a thread");

/// Where a weight meets x, from where the kernel's first one does.
template <class Index>
struct alignas(4 * sizeof(Index)) ConvTap {
  Index offset, at[3];
};

template <class Index>
CUOP_FN ConvTap<Index> tap_of(const DirectConv& a, Index number) {
  ConvTap<Index> tap;
#pragma unroll
  for (int axis = 2; axis >= 0; --axis) {
    const Index size = static_cast<Index>(a.kernel[axis]), left = number / size;
    tap.at[axis] = (number - left * size) * static_cast<Index>(a.dilation[axis]);
    number = left;
  }
  tap.offset = number;  // the channel
#pragma unroll
  for (int axis = 0; axis < 3; ++axis) {
    tap.offset = tap.offset * static_cast<Index>(a.in[axis]) + tap.at[axis];
  }
  return tap;
}

/// A sum as an element of y, rectified before its only rounding where that is asked for.
template <class T>
CUOP_FN T finished(ProductSum<T> sum, bool has_relu) {
  if constexpr (is_complex_type<T>) {
    return from_sum<T>(sum);
  } else if constexpr (is_whole_type<T>) {
    const T whole = from_sum<T>(sum);  // sums of integers are unsigned
    return has_relu ? fn::Relu::apply(whole) : whole;
  } else {
    return from_sum<T>(has_relu ? fn::Relu::apply(sum) : sum);
  }
}

/// `Own` channels of a thread. Index is a signed type that holds every index, of the padded x too.
template <class T, int Own, class Index>
CUOP_FN void convolve_direct(const DirectConv& a) {
  using Sum = ProductSum<T>;
  alignas(16) __shared__ Sum weights[kConvTaps][Own];
  __shared__ ConvTap<Index> taps[kConvTaps];
  const int thread = static_cast<int>(threadIdx.x);
  const T* const x = static_cast<const T*>(a.x);
  const T* const bias = static_cast<const T*>(a.bias);
  T* const y = static_cast<T*>(a.y);
  const Index all_taps = static_cast<Index>(a.taps);
  const Index group_out = static_cast<Index>(a.group_out);
#pragma unroll 1
  for (int64_t tile = blockIdx.x; tile < a.tiles; tile += gridDim.x) {
    const int64_t rest = tile / a.channel_tiles;
    const Index channel = static_cast<Index>(tile - rest * a.channel_tiles) * Own;
    const Index group = static_cast<Index>(rest / a.position_tiles);
    const int64_t position = (rest - group * a.position_tiles) * kConvThreads + thread;
    const bool is_position = position < a.positions;
    // The first element of x that this position's kernel meets; it may be outside.
    Index image = static_cast<Index>(is_position ? position : 0), volume = 1, place = 0, start[3];
#pragma unroll
    for (int axis = 2; axis >= 0; --axis) {
      const Index size = static_cast<Index>(a.out[axis]), left = image / size;
      const Index at = image - left * size;
      start[axis] = at * static_cast<Index>(a.stride[axis]) - static_cast<Index>(a.padding[axis]);
      place += at * volume;
      volume *= size;
      image = left;
    }
    image = image * static_cast<Index>(a.groups) + group;
    Index first = image * static_cast<Index>(a.group_in);
#pragma unroll
    for (int axis = 0; axis < 3; ++axis) {
      first = first * static_cast<Index>(a.in[axis]) + start[axis];
    }
    const T* const w = static_cast<const T*>(a.w) + (group * group_out + channel) * all_taps;
    Sum sums[Own];
#pragma unroll
    for (int k = 0; k < Own; ++k) {
      const bool is_biased = bias != nullptr && channel + k < group_out;
      sums[k] = is_biased ? static_cast<Sum>(bias[group * group_out + channel + k]) : Sum(0);
    }
#pragma unroll 1
    for (Index begin = 0; begin < all_taps; begin += kConvTaps) {
      const Index left = all_taps - begin;
      const int count = left < kConvTaps ? static_cast<int>(left) : kConvTaps;
      __syncthreads();  // the piece before has been read
#pragma unroll 1
      for (int i = thread; i < kConvTaps * Own; i += kConvThreads) {
        const int tap = i % kConvTaps, k = i / kConvTaps;
        const bool is_weight = tap < count && channel + k < group_out;
        weights[tap][k] = is_weight ? static_cast<Sum>(w[k * all_taps + begin + tap]) : Sum(0);
      }
      if (thread < count) taps[thread] = tap_of(a, static_cast<Index>(begin + thread));
      __syncthreads();
#pragma unroll 4
      for (int t = 0; t < count; ++t) {
        const ConvTap<Index> tap = taps[t];
        bool is_inside = is_position;
#pragma unroll
        for (int axis = 0; axis < 3; ++axis) {
          // Unsigned, what is before x is far behind it.
          is_inside &= wrap(start[axis] + tap.at[axis]) < wrap(static_cast<Index>(a.in[axis]));
        }
        // Zeros around x are multiplied as the CPU does it: an infinite weight makes them NaN.
        const Sum value = is_inside ? static_cast<Sum>(x[first + tap.offset]) : Sum(0);
#pragma unroll
        for (int k = 0; k < Own; ++k) sums[k] = add_product<T>(sums[k], value, weights[t][k]);
      }
    }
#pragma unroll
    for (int k = 0; k < Own; ++k) {
      if (!is_position || channel + k >= group_out) continue;
      y[(image * group_out + channel + k) * volume + place] = finished<T>(sums[k], a.has_relu);
    }
  }
}

}  // namespace cuop::jit
