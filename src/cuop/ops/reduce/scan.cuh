// Running sums. Long lines are cut into tiles, each read once and written once: a block adds up its
// tile, publishes the sum, and takes what lies before its tile from the sums of the tiles of its
// group and the start of the group, which the last tile of the group before publishes (the chained
// scan of Merrill and Garland, "Single-pass parallel prefix scan with decoupled look-back", 2016,
// but with one fixed order of additions, so that the bits do not depend on who came when). Short
// lines are left to one thread each.
#pragma once

#include "cuop/core/divide_up.h"
#include "cuop/jit/kernels/conversion.h"
#include "cuop/jit/kernels/sharing.cuh"
#include "cuop/jit/kernels/thread_sums.cuh"
#include "cuop/ops/reduce/reduce_arguments.cuh"

namespace cuop::jit {

/// Publishes a value for other blocks; one thread.
template <class T>
CUOP_FN void publish(T* place, unsigned* flag, T value) {
  *place = value;
  __threadfence();
  atomicAdd(flag, 1u);
}
/// Waits for a value of another block.
template <class T>
CUOP_FN T await(const T* place, unsigned* flag) {
  while (atomicAdd(flag, 0u) == 0) {
  }
  __threadfence();
  return load_fresh(place);
}

/// The sum of all tiles of the line before this one, whose own sum is `sum`.
template <class T>
CUOP_FN T start_of_tile(const Scan& a, int64_t line, int64_t tile, T sum) {
  __shared__ T start_of_group;
  T* const sums = static_cast<T*>(a.sums) + line * a.tiles;
  unsigned* const has_sum = a.has_sum + line * a.tiles;
  const int64_t groups = divide_up(a.tiles, kScanGroup), group = tile / kScanGroup;
  T* const starts = static_cast<T*>(a.starts) + line * groups;
  unsigned* const has_start = a.has_start + line * groups;
  const int64_t first = group * kScanGroup, mine = first + threadIdx.x;
  if (threadIdx.x == 0) publish(sums + tile, has_sum + tile, sum);
  T before;
  sum_of_threads_before<kScanThreads>(mine < tile ? await(sums + mine, has_sum + mine) : T(0),
                                      before);
  if (threadIdx.x == 0) {
    const T start = group > 0 ? await(starts + group, has_start + group) + before : before;
    if (tile + 1 == first + kScanGroup && tile + 1 < a.tiles) {
      publish(starts + group + 1, has_start + group + 1, start + sum);
    }
    start_of_group = start;
  }
  __syncthreads();
  const T start = start_of_group;
  __syncthreads();
  return start;
}

/// Long lines. T is what sums are kept in: double for floats, so that each result is rounded once.
template <class Source, class T, class Out>
CUOP_FN void scan_tiles(const Scan& a) {
  // Between each thread's elements lies an empty place, or its neighbours would wait for it.
  constexpr int kPlaces = kScanTile + kScanThreads;
  constexpr auto place = [](int i) { return i + i / kScanItems; };
  __shared__ T values[kPlaces];
  __shared__ unsigned taken;
  const LinePair& lines = a.lines;
  const int thread = static_cast<int>(threadIdx.x);
#pragma unroll 1
  while (true) {
    if (thread == 0) taken = atomicAdd(a.ticket, 1u);
    __syncthreads();
    const int64_t unit = taken;
    if (unit >= lines.count * a.tiles) return;
    const int64_t line = unit / a.tiles, tile = unit % a.tiles;
    const PlaceOffsets<2> start_of = offsets_at(lines.starts, line);
    const int64_t first = tile * kScanTile, left = lines.length - first;
    const int count = left < kScanTile ? static_cast<int>(left) : kScanTile;
    const Source* const x =
        static_cast<const Source*>(lines.x) + start_of.of[0] + first * lines.x_step;
#pragma unroll
    for (int k = 0; k < kScanItems; ++k) {
      const int i = k * kScanThreads + thread;
      values[place(i)] = i < count ? convert<T>(x[i * lines.x_step]) : T(0);
    }
    __syncthreads();
    T mine[kScanItems];
#pragma unroll
    for (int k = 0; k < kScanItems; ++k) mine[k] = values[place(thread * kScanItems + k)];
#pragma unroll
    for (int k = 1; k < kScanItems; ++k) mine[k] = mine[k - 1] + mine[k];
    T sum;
    T start = sum_of_threads_before<kScanThreads>(mine[kScanItems - 1], sum);
    if (a.tiles > 1) start = start_of_tile(a, line, tile, sum) + start;
#pragma unroll
    for (int k = 0; k < kScanItems; ++k) values[place(thread * kScanItems + k)] = start + mine[k];
    __syncthreads();
    Out* const out = static_cast<Out*>(lines.out) + start_of.of[1] + first * lines.out_step;
#pragma unroll
    for (int k = 0; k < kScanItems; ++k) {
      const int i = k * kScanThreads + thread;
      if (i < count) out[i * lines.out_step] = convert<Out>(values[place(i)]);
    }
    __syncthreads();  // the values and the ticket have been read
  }
}

/// A thread a line.
template <class Source, class T, class Out>
CUOP_FN void scan_short_lines(const Scan& a) {
  const LinePair& lines = a.lines;
#pragma unroll 1
  for (int64_t line = int64_t(blockIdx.x) * kScanThreads + threadIdx.x; line < lines.count;
       line += int64_t(gridDim.x) * kScanThreads) {
    const PlaceOffsets<2> start = offsets_at(lines.starts, line);
    const Source* const x = static_cast<const Source*>(lines.x) + start.of[0];
    Out* const out = static_cast<Out*>(lines.out) + start.of[1];
    T total = T(0);
    int64_t i = 0;
    constexpr int kAtATime = 4;
#pragma unroll 1
    for (; lines.length - i >= kAtATime; i += kAtATime) {
      Source next[kAtATime];
#pragma unroll
      for (int k = 0; k < kAtATime; ++k) next[k] = x[(i + k) * lines.x_step];
#pragma unroll
      for (int k = 0; k < kAtATime; ++k) {
        total = total + convert<T>(next[k]);
        out[(i + k) * lines.out_step] = convert<Out>(total);
      }
    }
#pragma unroll 1
    for (; i < lines.length; ++i) {
      total = total + convert<T>(x[i * lines.x_step]);
      out[i * lines.out_step] = convert<Out>(total);
    }
  }
}

}  // namespace cuop::jit
