// Sorting of lines: blocks sort tiles, several short lines in one or a part of a long line, then
// sorted runs are merged pairwise, a pass over memory for each doubling of their length. Stable,
// and so the same for every way to cut the work.
#pragma once

#include "cuop/ops/sort/merge.cuh"
#include "cuop/ops/sort/sort_arguments.cuh"

namespace cuop::jit {

struct SortPlace {
  int64_t x, out;
};
CUOP_FN SortPlace place_of_sorted(const SortLines& a, int64_t line) {
  SortPlace place{0, 0};
  for (int axis = a.axes - 1; axis >= 0; --axis) {
    const int64_t next = axis > 0 ? line / a.sizes[axis] : 0, at = line - next * a.sizes[axis];
    place.x += at * a.x_strides[axis];
    place.out += at * a.out_strides[axis];
    line = next;
  }
  return place;
}

template <class Position>
inline constexpr bool has_position = true;
template <>
inline constexpr bool has_position<NoPosition> = false;

/// The record of an element. Positions are sorted by inverted keys where the order falls, so that
/// equal elements keep their order there too; values are written backwards.
template <NumberKind Kind, class Key, class Position>
CUOP_FN SortRecord<Key, Position> record_of(const SortLines& a, Key bits, int64_t index) {
  const Key infinity = static_cast<Key>(a.infinity);
  if constexpr (has_position<Position>) {
    const Key key = encode_key<Kind, true>(bits, infinity);
    return {a.is_descending ? static_cast<Key>(~key) : key, static_cast<Position>(index)};
  } else {
    return {encode_key<Kind, false>(bits, infinity), {}};
  }
}

template <NumberKind Kind, class Key, class Position>
CUOP_FN void store_sorted(const SortLines& a, int64_t line, int64_t index,
                          SortRecord<Key, Position> record) {
  const int64_t out = place_of_sorted(a, line).out;
  if constexpr (has_position<Position>) {
    static_cast<int64_t*>(a.out)[out + index * a.out_step] = static_cast<int64_t>(record.position);
  } else {
    const int64_t at = a.is_descending ? a.length - 1 - index : index;
    static_cast<Key*>(a.out)[out + at * a.out_step] = decode_key<Kind>(record.key);
  }
}

template <class Key, class Position>
CUOP_FN void store_run(const SortedRuns& runs, int64_t at, SortRecord<Key, Position> record) {
  static_cast<Key*>(runs.keys)[at] = record.key;
  if constexpr (has_position<Position>)
    static_cast<Position*>(runs.positions)[at] = record.position;
}
template <class Key, class Position>
CUOP_FN SortRecord<Key, Position> load_run(const SortedRuns& runs, int64_t at) {
  const Key key = static_cast<const Key*>(runs.keys)[at];
  if constexpr (has_position<Position>) {
    return {key, static_cast<const Position*>(runs.positions)[at]};
  } else {
    return {key, {}};
  }
}

/// A thread's records through shared memory, so that neighbours store neighbours:
/// visit(place in the tile, record).
template <class Key, class Position, class Visit>
CUOP_FN void in_order(SortTile<Key, Position>& tile, SortRecord<Key, Position> (&items)[kSortItems],
                      Visit&& visit) {
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kSortItems; ++k) {
    tile.set(static_cast<int>(threadIdx.x) * kSortItems + k, items[k]);
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kSortItems; ++k) {
    const int i = k * kSortThreads + static_cast<int>(threadIdx.x);
    visit(i, tile.get(i));
  }
  __syncthreads();  // the tile is free
}

/// Sorts tiles: kSortTile / width lines, or the tile of a long line, which goes to a.to.
template <class Key, NumberKind Kind, class Position>
CUOP_FN void sort_tiles(const SortLines& a) {
  using Record = SortRecord<Key, Position>;
  __shared__ SortTile<Key, Position> tile;
  const int lines_each = kSortTile / a.width;
  const int64_t groups = (a.lines + lines_each - 1) / lines_each;
#pragma unroll 1
  for (int64_t unit = blockIdx.x; unit < groups * a.tiles; unit += gridDim.x) {
    const int64_t first_line = unit / a.tiles * lines_each, first = unit % a.tiles * kSortTile;
    const auto line_of = [&](int i) { return first_line + i / a.width; };
    const auto index_of = [&](int i) { return first + i % a.width; };
    const auto is_there = [&](int i) { return line_of(i) < a.lines && index_of(i) < a.length; };
#pragma unroll
    for (int k = 0; k < kSortItems; ++k) {
      const int i = k * kSortThreads + static_cast<int>(threadIdx.x);
      // Behind the last element, as it comes after all of the same key.
      Record record{static_cast<Key>(~Key{0}), {}};
      if (is_there(i)) {
        const int64_t at = place_of_sorted(a, line_of(i)).x + index_of(i) * a.x_step;
        record = record_of<Kind, Key, Position>(a, static_cast<const Key*>(a.x)[at], index_of(i));
      }
      tile.set(i, record);
    }
    __syncthreads();
    Record items[kSortItems];
#pragma unroll
    for (int k = 0; k < kSortItems; ++k) {
      items[k] = tile.get(static_cast<int>(threadIdx.x) * kSortItems + k);
    }
    sort_tile(tile, a.width, items);
    in_order(tile, items, [&](int i, const Record& record) {
      if (!is_there(i)) return;
      if (a.tiles > 1) {
        store_run(a.to, line_of(i) * a.length + index_of(i), record);
      } else {
        store_sorted<Kind>(a, line_of(i), index_of(i), record);
      }
    });
  }
}

/// Merges runs of a.run records, whole tiles, pairwise. Where a line has but two, into the output.
template <class Key, NumberKind Kind, class Position>
CUOP_FN void merge_runs(const SortLines& a) {
  using Record = SortRecord<Key, Position>;
  __shared__ SortTile<Key, Position> tile;
  __shared__ int64_t splits[2];
  const int thread = static_cast<int>(threadIdx.x);
#pragma unroll 1
  for (int64_t unit = blockIdx.x; unit < a.lines * a.tiles; unit += gridDim.x) {
    const int64_t line = unit / a.tiles, first = unit % a.tiles * kSortTile;
    const int64_t base = first / (2 * a.run) * (2 * a.run), left = a.length - base;
    const int64_t count_a = left < a.run ? left : a.run;
    const int64_t count_b = left - count_a < a.run ? left - count_a : a.run;
    const int64_t begin = first - base;
    const int64_t end =
        begin + kSortTile < count_a + count_b ? begin + kSortTile : count_a + count_b;
    const int64_t run_a = line * a.length + base, run_b = run_a + count_a;
    if (thread < 2) {
      const Key* const keys = static_cast<const Key*>(a.from.keys);
      splits[thread] = merge_split(
          thread == 0 ? begin : end, count_a, [&](int64_t k) { return keys[run_a + k]; }, count_b,
          [&](int64_t k) { return keys[run_b + k]; });
    }
    __syncthreads();
    const int64_t from_a = splits[0], from_b = begin - from_a;
    const int of_a = static_cast<int>(splits[1] - from_a);
    const int count = static_cast<int>(end - begin);
#pragma unroll
    for (int k = 0; k < kSortItems; ++k) {
      const int i = k * kSortThreads + thread;
      if (i >= count) continue;
      tile.set(i, load_run<Key, Position>(
                      a.from, i < of_a ? run_a + from_a + i : run_b + from_b + (i - of_a)));
    }
    __syncthreads();
    Record items[kSortItems] = {};
    const int diagonal = thread * kSortItems < count ? thread * kSortItems : count;
    merge_items(tile, diagonal, 0, of_a, of_a, count - of_a, items);
    in_order(tile, items, [&](int i, const Record& record) {
      if (i >= count) return;
      if (2 * a.run < a.length) {
        store_run(a.to, line * a.length + first + i, record);
      } else {
        store_sorted<Kind>(a, line, first + i, record);
      }
    });
  }
}

template <class Key, NumberKind Kind>
CUOP_FN void mark_runs(const RunStarts& a) {
  const auto key = [&](int64_t i) {
    return encode_key<Kind, true>(static_cast<const Key*>(a.x)[a.order[i]],
                                  static_cast<Key>(a.infinity));
  };
  for (int64_t i = int64_t(blockIdx.x) * kSortThreads + threadIdx.x; i < a.count;
       i += int64_t(gridDim.x) * kSortThreads) {
    a.starts[i] = i == 0 || key(i) != key(i - 1);
  }
}

}  // namespace cuop::jit
