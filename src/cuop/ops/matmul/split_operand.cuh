// Splits the elements of float32 matrices into three bfloat16 numbers each, x = p0 + p1 + p2.
//
// A block has groups of 8 lines for itself, and reads them once: their elements as they are. Where
// a line has others than those whose parts are all exact and whose products stay finite, it is read
// again and multiplied by a power of two that brings its largest element near 2^kRaised. Lines that
// no power of two serves, with infinities or with elements further apart than float32's range
// leaves room for, are marked: their sums are computed from the elements themselves. So are those
// with NaN, whose sums are NaN.
#pragma once

#include "cuop/core/divide_up.h"
#include "cuop/jit/kernels/warpgroup_units.cuh"
#include "cuop/ops/matmul/split_product_arguments.cuh"

namespace cuop::jit {

/// A third part's last bit is 2^-23 of its element, and normal numbers reach down to 2^-126.
inline constexpr float kLeastPlain = 0x1p-100f, kMostPlain = 0x1p45f;
inline constexpr int kRaised = 50, kWidest = 150;
/// Raised so far, any element has exact parts: all are multiples of 2^-149.
inline constexpr int kAlwaysExact = 23;
inline constexpr float kLargestFloat = 0x1.fffffep127f;

/// The magnitudes of a line's elements that are not 0.
struct LineRange {
  float least, most;
  bool is_finite, has_nan;

  CUOP_FN static LineRange none() { return {kLargestFloat, 0.0f, true, false}; }
  CUOP_FN void take(float x) {
    const float size = ::fabsf(x);
    is_finite = is_finite && size <= kLargestFloat;
    has_nan = has_nan || size != size;
    most = ::fmaxf(most, size);
    if (size > 0.0f) least = ::fminf(least, size);
  }
  CUOP_FN void take(const LineRange& other) {
    is_finite = is_finite && other.is_finite;
    has_nan = has_nan || other.has_nan;
    most = ::fmaxf(most, other.most);
    least = ::fminf(least, other.least);
  }
  CUOP_FN bool is_plain() const { return is_finite && most <= kMostPlain && least >= kLeastPlain; }

  /// Of the power of two that its elements have been divided by, kNotSplit or kHasNan.
  CUOP_FN int exponent() const {
    if (is_plain()) return 0;
    if (has_nan) return kHasNan;
    const int by = exponent_of(most) - kRaised;
    const bool is_exact = exponent_of(most) - exponent_of(least) <= kWidest || by <= -kAlwaysExact;
    if (!is_finite || !is_exact) return kNotSplit;
    return by < -126 ? -126 : by;
  }

 private:
  CUOP_FN static int exponent_of(float size) {
    const auto bits = __builtin_bit_cast(int, size);
    const int biased = bits >> 23;
    return biased > 0 ? biased - 127 : 31 - __clz(bits) - 149;
  }
};

CUOP_FN float power_of_two(int exponent) {
  return __builtin_bit_cast(float, (exponent + 127) << 23);
}

/// How the lanes of a warp share 8 lines and 32 of their depth: 8 elements of a line each, so that
/// the warp reads whole sectors of memory and writes whole groups.
template <bool IsAlongDepth>
struct SplitLane {
  int line, depth;
  CUOP_FN SplitLane() {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    line = IsAlongDepth ? lane / 4 : lane % 8;
    depth = (IsAlongDepth ? lane % 4 : lane / 8) * 8;
  }
  /// The range of the whole line, from what its four lanes have seen.
  CUOP_FN static LineRange joined(LineRange range) {
    constexpr int kFirst = IsAlongDepth ? 1 : 8;
#pragma unroll
    for (int apart = kFirst; apart < 4 * kFirst; apart *= 2) {
      LineRange other;
      other.least = __shfl_xor_sync(0xffffffffu, range.least, apart);
      other.most = __shfl_xor_sync(0xffffffffu, range.most, apart);
      const int flags = (range.is_finite ? 1 : 0) | (range.has_nan ? 2 : 0);
      const int others = __shfl_xor_sync(0xffffffffu, flags, apart);
      other.is_finite = (others & 1) != 0;
      other.has_nan = (others & 2) != 0;
      range.take(other);
    }
    return range;
  }
};

/// Eight elements of a line, zeros beyond its end.
template <bool IsAlongDepth>
CUOP_FN void read_elements(float (&x)[8], const SplitOperand& p, const float* line, bool is_there,
                           int64_t depth) {
#pragma unroll
  for (int i = 0; i < 8; ++i) x[i] = 0.0f;
  if (!is_there) return;
  if constexpr (IsAlongDepth) {
    const auto place = static_cast<int64_t>(reinterpret_cast<uint64_t>(p.data) / sizeof(float));
    const bool is_aligned = ((place | p.line_step | p.matrix_step) & 3) == 0;
    if (is_aligned && depth + 8 <= p.depth) {
      struct alignas(16) Four {
        float values[4];
      };
      const Four low = *reinterpret_cast<const Four*>(line + depth);
      const Four high = *reinterpret_cast<const Four*>(line + depth + 4);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        x[i] = low.values[i];
        x[4 + i] = high.values[i];
      }
      return;
    }
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    if (depth + i < p.depth) x[i] = line[(depth + i) * p.depth_step];
  }
}

/// The parts of eight elements, times a power of two, into their group.
CUOP_FN void write_parts(unsigned char* group, int line, int depth, const float (&x)[8],
                         float factor) {
  struct alignas(16) Eight {
    uint16_t bits[8];
  };
  Eight parts[kSplitParts];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    float rest = x[i] * factor;
#pragma unroll
    for (int part = 0; part < kSplitParts; ++part) {
      const BFloat16 next = narrowed<BFloat16>(rest);
      parts[part].bits[i] = next.bits;
      rest -= static_cast<float>(next);
    }
  }
  unsigned char* const at = group + UnitLines<kSplitGroupBytes>::place(line, depth);
#pragma unroll
  for (int part = 0; part < kSplitParts; ++part) {
    *reinterpret_cast<Eight*>(at + part * kSplitPartBytes) = parts[part];
  }
}

/// `Groups` neighbouring groups of lines, each split by its share of the block's warps.
template <bool IsAlongDepth, int Groups>
CUOP_FN void split_groups(const SplitOperand& p, int64_t block) {
  constexpr int kWarps = kSplitThreads / 32, kWarpsOfGroup = kWarps / Groups;
  const int64_t blocks = divide_up(p.to.groups, Groups);
  const int64_t matrix = quotient(block, blocks);
  const int warp = static_cast<int>(threadIdx.x) / 32, share = warp / Groups;
  const int64_t group = (block - matrix * blocks) * Groups + warp % Groups;
  const SplitLane<IsAlongDepth> lane;
  const int64_t number = group * kSplitGroup + lane.line;
  const bool is_there = number < p.lines;
  const float* const line = p.data + matrix * p.matrix_step + (is_there ? number : 0) * p.line_step;
  unsigned char* const parts = p.to.parts + matrix * p.to.part_step + group * kSplitGroupBytes;
  const int64_t step_bytes = p.to.groups * kSplitGroupBytes;
  const bool has_group = group < p.to.groups;
  const auto steps = static_cast<int>(divide_up(p.depth, kSplitDepth));
  LineRange range = LineRange::none();
  if (has_group) {
#pragma unroll 2
    for (int step = share; step < steps; step += kWarpsOfGroup) {
      const int64_t depth = int64_t{step} * kSplitDepth + lane.depth;
      float x[8];
      read_elements<IsAlongDepth>(x, p, line, is_there, depth);
#pragma unroll
      for (int i = 0; i < 8; ++i) range.take(x[i]);
      write_parts(parts + step * step_bytes, lane.line, lane.depth, x, 1.0f);
    }
  }
  __shared__ LineRange ranges[kWarps][kSplitGroup];
  __shared__ int needs_powers;
  if (threadIdx.x == 0) needs_powers = 0;
  range = lane.joined(range);
  if (lane.depth == 0) ranges[warp][lane.line] = range;
  __syncthreads();
#pragma unroll
  for (int other = 0; other < kWarpsOfGroup; ++other) {
    range.take(ranges[other * Groups + warp % Groups][lane.line]);
  }
  const int exponent = range.exponent();
  if (has_group && share == 0 && lane.depth == 0) {
    p.to.exponents[matrix * p.to.exponent_step + number] = exponent;
  }
  if (__any_sync(0xffffffffu, exponent != 0 && exponent > kNotSplit) && threadIdx.x % 32 == 0) {
    atomicOr(&needs_powers, 1);
  }
  __syncthreads();
  if (needs_powers == 0 || !has_group) return;
  const float factor = exponent <= kNotSplit ? 0.0f : power_of_two(-exponent);
  CUOP_ROLLED
  for (int step = share; step < steps; step += kWarpsOfGroup) {
    const int64_t depth = int64_t{step} * kSplitDepth + lane.depth;
    float x[8];
    read_elements<IsAlongDepth>(x, p, line, is_there, depth);
    write_parts(parts + step * step_bytes, lane.line, lane.depth, x, factor);
  }
}

template <bool AlongDepthOfA, int GroupsOfA, bool AlongDepthOfB, int GroupsOfB>
CUOP_FN void split_operands(const SplitOperands& p) {
  const int64_t block = blockIdx.x;
  if (block < p.blocks_of_a) {
    split_groups<AlongDepthOfA, GroupsOfA>(p.a, block);
  } else {
    split_groups<AlongDepthOfB, GroupsOfB>(p.b, block - p.blocks_of_a);
  }
}

}  // namespace cuop::jit
