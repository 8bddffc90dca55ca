// Stable merging of sorted records in shared memory: where a thread's part of the output begins in
// both inputs (the merge path of Green, McColl and Bader, 2012), and that part itself.
#pragma once

#include "cuop/ops/sort/record.cuh"

namespace cuop::jit {

inline constexpr int kSortThreads = 256;
/// Records of a thread and of a tile.
inline constexpr int kSortItems = 8, kSortTile = kSortItems * kSortThreads;

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

}  // namespace cuop::jit
