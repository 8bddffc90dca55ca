// Sorting of lines: blocks sort tiles, several short lines in one or a part of a long line, then
// sorted runs are merged pairwise, a pass over memory for each doubling of their length. Stable,
// and so the same for every way to cut the work. Very long lines are left to digits.cuh.
#pragma once

#include "cuop/core/divide_up.h"
#include "cuop/ops/sort/record.cuh"

namespace cuop::jit {

/// Records of a tile. Between the records of two threads lies an empty place, or neighbours would
/// wait for each other.
template <class Key, class Position>
struct SortTile {
  static constexpr int kPlaces = kSortTile + kSortThreads;
  Key keys[kPlaces];
  Position positions[kPlaces];

  CUOP_FN static int place(int i) { return i + i / kSortItems; }
  CUOP_FN Key key(int i) const { return keys[place(i)]; }
  CUOP_FN SortRecord<Key, Position> get(int i) const {
    return {keys[place(i)], positions[place(i)]};
  }
  CUOP_FN void set(int i, SortRecord<Key, Position> record) {
    keys[place(i)] = record.key;
    positions[place(i)] = record.position;
  }
};
template <class Key>
struct SortTile<Key, NoPosition> {
  static constexpr int kPlaces = kSortTile + kSortThreads;
  Key keys[kPlaces];

  CUOP_FN static int place(int i) { return i + i / kSortItems; }
  CUOP_FN Key key(int i) const { return keys[place(i)]; }
  CUOP_FN SortRecord<Key, NoPosition> get(int i) const { return {keys[place(i)], {}}; }
  CUOP_FN void set(int i, SortRecord<Key, NoPosition> record) { keys[place(i)] = record.key; }
};

/// How many of the first `diagonal` records of the output come from a; of equal ones a's are first.
template <class Count, class KeyOfA, class KeyOfB>
CUOP_FN Count merge_split(Count diagonal, Count count_a, KeyOfA a, Count count_b, KeyOfB b) {
  Count low = diagonal > count_b ? diagonal - count_b : 0;
  Count high = diagonal < count_a ? diagonal : count_a;
#pragma unroll 1
  while (low < high) {
    const Count middle = (low + high) / 2;
    if (a(middle) <= b(diagonal - 1 - middle)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

/// The records [diagonal, diagonal + kSortItems) of the merge of two runs of a tile, which begin at
/// `a` and `b`.
template <class Key, class Position>
CUOP_FN void merge_items(const SortTile<Key, Position>& tile, int diagonal, int a, int count_a,
                         int b, int count_b, SortRecord<Key, Position> (&items)[kSortItems]) {
  int i = merge_split(
      diagonal, count_a, [&](int k) { return tile.key(a + k); }, count_b,
      [&](int k) { return tile.key(b + k); });
  int j = diagonal - i;
#pragma unroll
  for (int k = 0; k < kSortItems; ++k) {
    const bool has_a = i < count_a, has_b = j < count_b;
    if (has_a && (!has_b || tile.key(a + i) <= tile.key(b + j))) {
      items[k] = tile.get(a + i++);
    } else if (has_b) {
      items[k] = tile.get(b + j++);
    }
  }
}

/// Sorts a thread's records: neighbours change places until none would.
template <class Key, class Position>
CUOP_FN void sort_items(SortRecord<Key, Position> (&items)[kSortItems]) {
#pragma unroll
  for (int round = 0; round < kSortItems; ++round) {
#pragma unroll
    for (int k = round % 2; k + 1 < kSortItems; k += 2) {
      if (items[k + 1].key < items[k].key) {
        const SortRecord<Key, Position> first = items[k];
        items[k] = items[k + 1];
        items[k + 1] = first;
      }
    }
  }
}

/// Sorts each `width` records of a tile, a power of two from kSortItems on; they come and go in
/// order of threads. Every thread of the block must come here.
template <class Key, class Position>
CUOP_FN void sort_tile(SortTile<Key, Position>& tile, int width,
                       SortRecord<Key, Position> (&items)[kSortItems]) {
  const int first = static_cast<int>(threadIdx.x) * kSortItems;
  sort_items(items);
#pragma unroll 1
  for (int run = kSortItems; run < width; run *= 2) {
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kSortItems; ++k) tile.set(first + k, items[k]);
    __syncthreads();
    const int a = first / (2 * run) * (2 * run);
    merge_items(tile, first - a, a, run, a + run, run, items);
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
#pragma unroll 2
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
  __shared__ PlaceOffsets<2> starts[kSortTile / kSortItems];  // of the tile's lines
  const LinePair& lines = a.order.lines;
  const int lines_each = kSortTile / a.width;
  const int64_t groups = divide_up(lines.count, lines_each);
#pragma unroll 1
  for (int64_t unit = blockIdx.x; unit < groups * a.tiles; unit += gridDim.x) {
    const int64_t first_line = unit / a.tiles * lines_each, first = unit % a.tiles * kSortTile;
    const auto line_of = [&](int i) { return first_line + i / a.width; };
    const auto index_of = [&](int i) { return first + i % a.width; };
    const auto is_there = [&](int i) {
      return line_of(i) < lines.count && index_of(i) < lines.length;
    };
    const int own = static_cast<int>(threadIdx.x);
    if (own < lines_each && first_line + own < lines.count) {
      starts[own] = offsets_at(lines.starts, first_line + own);
    }
    __syncthreads();
#pragma unroll 4
    for (int k = 0; k < kSortItems; ++k) {
      const int i = k * kSortThreads + static_cast<int>(threadIdx.x);
      // Behind the last element, as it comes after all of the same key.
      Record record{static_cast<Key>(~Key{0}), {}};
      if (is_there(i)) {
        const int64_t at = starts[i / a.width].of[0] + index_of(i) * lines.x_step;
        const Key bits = static_cast<const Key*>(lines.x)[at];
        record = record_of<Kind, Key, Position>(a.order, bits, index_of(i));
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
        store_run(a.to, line_of(i) * lines.length + index_of(i), record);
      } else {
        store_sorted<Kind>(a.order, starts[i / a.width].of[1], index_of(i), record);
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
  const LinePair& lines = a.order.lines;
  const int thread = static_cast<int>(threadIdx.x);
#pragma unroll 1
  for (int64_t unit = blockIdx.x; unit < lines.count * a.tiles; unit += gridDim.x) {
    const int64_t line = unit / a.tiles, first = unit % a.tiles * kSortTile;
    const int64_t base = first / (2 * a.run) * (2 * a.run), left = lines.length - base;
    const int64_t count_a = left < a.run ? left : a.run;
    const int64_t count_b = left - count_a < a.run ? left - count_a : a.run;
    const int64_t begin = first - base;
    const int64_t end =
        begin + kSortTile < count_a + count_b ? begin + kSortTile : count_a + count_b;
    const int64_t run_a = line * lines.length + base, run_b = run_a + count_a;
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
#pragma unroll 4
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
      if (2 * a.run < lines.length) {
        store_run(a.to, line * lines.length + first + i, record);
      } else {
        store_sorted<Kind>(a.order, offsets_at(lines.starts, line).of[1], first + i, record);
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
