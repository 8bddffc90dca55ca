// Long lines sorted by the digits of their keys, eight bits each, the least significant first. One
// pass counts all digits; then each digit takes one pass, which reads every record once and writes
// it once (Adinets and Merrill, "Onesweep: a faster least significant digit radix sort for GPUs",
// 2022): a block orders its tile by the digit, tells how many of its records have each value of it,
// and learns from the tiles before it where they go. Digits that are equal in all of a line are
// passed over. Every order is stable.
#pragma once

#include "cuop/core/divide_up.h"
#include "cuop/jit/kernels/sharing.cuh"
#include "cuop/jit/kernels/thread_sums.cuh"
#include "cuop/ops/sort/record.cuh"

namespace cuop::jit {

inline constexpr int kDigitWarps = kSortThreads / 32;
/// Elements that a thread counts at a time.
inline constexpr int kCountItems = 8;

/// Records of a thread, of a tile.
template <class Key, class Position>
inline constexpr int kDigitItems = digit_items(sizeof(Key) +
                                               (has_position<Position> ? sizeof(Position) : 0));
template <class Key, class Position>
inline constexpr int kDigitTile = kSortThreads* kDigitItems<Key, Position>;

template <class Key>
CUOP_FN int digit_of(Key key, int digit) {
  return static_cast<int>(key >> (8 * digit)) & 0xff;
}

/// Adds a thread's keys to the counts of a digit's values; of neighbours that are equal in it all
/// at once, or lines in order would have every thread wait for the others.
template <class Key>
CUOP_FN void add_to_counts(unsigned* counts, const Key (&keys)[kCountItems], int count, int digit) {
  if (count == 0) return;
  int value = digit_of(keys[0], digit);
  unsigned run = 1;
#pragma unroll
  for (int k = 1; k < kCountItems; ++k) {
    if (k >= count) continue;
    const int next = digit_of(keys[k], digit);
    if (next != value) {
      atomicAdd(counts + value, run);
      value = next;
      run = 0;
    }
    ++run;
  }
  atomicAdd(counts + value, run);
}

/// Counts become the numbers of elements with smaller values, and the digits that differ somewhere
/// in the line are marked; the first one where none does, for every line must arrive in the output.
template <int Digits>
CUOP_FN void finish_counts(const DigitSort& a, int64_t line) {
  __shared__ unsigned equal;
  uint64_t* const starts = a.starts + line * Digits * kDigitValues + threadIdx.x;
  if (threadIdx.x == 0) equal = 0;
  __syncthreads();
#pragma unroll 1
  for (int digit = 0; digit < Digits; ++digit) {
    const uint64_t own = load_fresh(starts + digit * kDigitValues);
    uint64_t total;
    starts[digit * kDigitValues] = sum_of_threads_before<kSortThreads>(own, total);
    if (own == static_cast<uint64_t>(a.order.lines.length)) atomicOr(&equal, 1u << digit);
  }
  __syncthreads();
  const unsigned differing = ~equal & ((1u << Digits) - 1);
  if (threadIdx.x == 0) a.needed[line] = differing != 0 ? differing : 1u;
}

/// Counts the values of all digits of all lines.
template <class Key, NumberKind Kind, class Position>
CUOP_FN void count_digits(const DigitSort& a) {
  constexpr int kDigits = static_cast<int>(sizeof(Key));
  __shared__ unsigned counts[kDigits][kDigitValues];
  const LinePair& lines = a.order.lines;
  const int thread = static_cast<int>(threadIdx.x);
#pragma unroll 1
  for (int64_t unit = blockIdx.x; unit < lines.count * a.stretches; unit += gridDim.x) {
    const int64_t line = unit / a.stretches, begin = unit % a.stretches * a.stretch;
    const int64_t end = lines.length - begin < a.stretch ? lines.length : begin + a.stretch;
    const Key* const x = static_cast<const Key*>(lines.x) + offsets_at(lines.starts, line).of[0];
#pragma unroll
    for (int digit = 0; digit < kDigits; ++digit) counts[digit][thread] = 0;
    __syncthreads();
#pragma unroll 1
    for (int64_t first = begin + thread; first < end; first += kCountItems * kSortThreads) {
      const int64_t left = divide_up(end - first, kSortThreads);
      const int count = left < kCountItems ? static_cast<int>(left) : kCountItems;
      Key keys[kCountItems];
#pragma unroll
      for (int k = 0; k < kCountItems; ++k) {
        const int64_t i = first + k * kSortThreads;
        keys[k] = k < count ? record_of<Kind, Key, Position>(a.order, x[i * lines.x_step], i).key
                            : Key(0);
      }
#pragma unroll 1
      for (int digit = 0; digit < kDigits; ++digit) {
        add_to_counts(counts[digit], keys, count, digit);
      }
    }
    __syncthreads();
#pragma unroll 1
    for (int digit = 0; digit < kDigits; ++digit) {
      const uint64_t counted = counts[digit][thread];
      uint64_t* const total = a.starts + (line * kDigits + digit) * kDigitValues + thread;
      if (counted != 0) atomicAdd(total, counted);
    }
    if (is_last_of(a.stretches, a.arrivals + line)) finish_counts<kDigits>(a, line);
    __syncthreads();  // the counts have been read
  }
}

/// Of each of a warp's records in turn, how many before it have its digit, those of the turns
/// before counted in `counts`, which is the warp's own.
template <class Key, int Items>
CUOP_FN void rank_in_warp(const Key (&keys)[Items], int digit, unsigned* counts,
                          unsigned (&ranks)[Items]) {
  const unsigned below = (1u << (threadIdx.x % 32)) - 1;
#pragma unroll
  for (int k = 0; k < Items; ++k) {
    const int value = digit_of(keys[k], digit);
    unsigned same = 0xffffffffu;  // the lanes whose records have this digit
#pragma unroll
    for (int bit = 0; bit < 8; ++bit) {
      const bool is_set = (value >> bit & 1) != 0;
      const unsigned set = __ballot_sync(0xffffffffu, is_set);
      same &= is_set ? set : ~set;
    }
    const unsigned before = counts[value];
    __syncwarp();
    if ((same & below) == 0) counts[value] = before + static_cast<unsigned>(__popc(same));
    __syncwarp();
    ranks[k] = before + static_cast<unsigned>(__popc(same & below));
  }
}

/// What a tile tells those behind it of one value of the digit: nothing yet, how many records of it
/// there are in the tile, or where those behind the tile begin. One word, so that it is seen whole;
/// its highest byte tells the passes apart.
struct TileWord {
  static constexpr int kShift = 56;
  static constexpr uint64_t kMask = (uint64_t(1) << kShift) - 1;

  CUOP_FN static uint64_t of_tile(int digit) { return static_cast<uint64_t>(2 * digit + 1); }
  CUOP_FN static uint64_t through_tile(int digit) { return static_cast<uint64_t>(2 * digit + 2); }
  CUOP_FN static void tell(uint64_t* place, uint64_t what, uint64_t number) {
    *static_cast<volatile uint64_t*>(place) = what << kShift | number;
  }
};

/// Where the records of this tile that have this thread's value of the digit go, of which there are
/// `own`. Tiles are given out in order, so those before this one are at work or done.
CUOP_FN uint64_t place_of_value(const DigitSort& a, int digits, int64_t line, int64_t tile,
                                uint64_t own) {
  uint64_t* const word = a.words + (line * a.tiles + tile) * kDigitValues + threadIdx.x;
  const uint64_t of_tile = TileWord::of_tile(a.digit), through = TileWord::through_tile(a.digit);
  uint64_t place = 0;
  if (tile == 0) {
    place = a.starts[(line * digits + a.digit) * kDigitValues + threadIdx.x];
  } else {
    TileWord::tell(word, of_tile, own);
    const uint64_t* before = word - kDigitValues;
    while (true) {
      const uint64_t told = *static_cast<const volatile uint64_t*>(before);
      const uint64_t what = told >> TileWord::kShift;
      if (what != of_tile && what != through) continue;
      place += told & TileWord::kMask;
      if (what == through) break;
      before -= kDigitValues;
    }
  }
  TileWord::tell(word, through, place + own);
  return place;
}

/// One pass: sorts the lines that need it by a digit.
template <class Key, NumberKind Kind, class Position>
CUOP_FN void sort_by_digit(const DigitSort& a) {
  using Record = SortRecord<Key, Position>;
  constexpr int kItems = kDigitItems<Key, Position>, kTile = kDigitTile<Key, Position>;
  constexpr int kDigits = static_cast<int>(sizeof(Key));
  __shared__ Key tile_keys[kTile];
  __shared__ Position tile_positions[has_position<Position> ? kTile : 1];
  __shared__ unsigned counts[kDigitWarps][kDigitValues];
  __shared__ int64_t places[kDigitValues];
  __shared__ unsigned taken;
  const LinePair& lines = a.order.lines;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  if (lines.count == 1 && (a.needed[0] >> a.digit & 1u) == 0) return;
#pragma unroll 1
  while (true) {
    if (thread == 0) taken = atomicAdd(a.tickets + a.digit, 1u);
    __syncthreads();
    const int64_t unit = taken;
    __syncthreads();  // the ticket has been read
    if (unit >= lines.count * a.tiles) return;
    const int64_t line = unit / a.tiles, tile = unit % a.tiles;
    const unsigned needed = a.needed[line], done = needed & ((1u << a.digit) - 1);
    if ((needed >> a.digit & 1u) == 0) continue;
    const bool is_first = done == 0, is_last = needed >> a.digit == 1u;
    const bool is_even = __popc(done) % 2 == 0;
    const SortedRuns from = is_even ? a.odd : a.even;
    const SortedRuns to = is_even ? a.even : a.odd;
    const PlaceOffsets<2> start = offsets_at(lines.starts, line);
    const int64_t first = tile * kTile, left = lines.length - first;
    const int count = left < kTile ? static_cast<int>(left) : kTile;
    const int64_t base = line * lines.length + first;  // in runs
    // A warp's records are neighbours, and so are those of its turns.
    const auto place_in_tile = [&](int k) { return (warp * kItems + k) * 32 + lane; };
#pragma unroll
    for (int w = 0; w < kDigitWarps; ++w) counts[w][thread] = 0;
    // Behind the last record, as it comes after all of the same digit.
    constexpr Key kBehind = static_cast<Key>(~Key(0));
    Key keys[kItems];
    if (is_first) {
      const Key* const x = static_cast<const Key*>(lines.x) + start.of[0] + first * lines.x_step;
#pragma unroll
      for (int k = 0; k < kItems; ++k) {
        const int i = place_in_tile(k);
        keys[k] = i < count ? record_of<Kind, Key, Position>(a.order, x[i * lines.x_step], i).key
                            : kBehind;
      }
    } else {
      const Key* const run = static_cast<const Key*>(from.keys) + base;
#pragma unroll
      for (int k = 0; k < kItems; ++k) {
        const int i = place_in_tile(k);
        keys[k] = i < count ? run[i] : kBehind;
      }
    }
    __syncthreads();
    unsigned ranks[kItems];
    rank_in_warp(keys, a.digit, counts[warp], ranks);
    __syncthreads();
    unsigned own = 0;  // records of the tile that have this thread's value
#pragma unroll
    for (int w = 0; w < kDigitWarps; ++w) {
      const unsigned in_warp = counts[w][thread];
      counts[w][thread] = own;
      own += in_warp;
    }
    unsigned all;
    const unsigned smaller = sum_of_threads_before<kSortThreads>(own, all);
    const uint64_t place = place_of_value(a, kDigits, line, tile, own);
    places[thread] = static_cast<int64_t>(place) - static_cast<int64_t>(smaller);
#pragma unroll
    for (int w = 0; w < kDigitWarps; ++w) counts[w][thread] += smaller;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      const unsigned at = counts[warp][digit_of(keys[k], a.digit)] + ranks[k];
      tile_keys[at] = keys[k];
      if constexpr (has_position<Position>) {
        const int i = place_in_tile(k);
        const Position* const run = static_cast<const Position*>(from.positions) + base;
        if (i < count) tile_positions[at] = is_first ? static_cast<Position>(first + i) : run[i];
      }
    }
    __syncthreads();
#pragma unroll 4
    for (int i = thread; i < count; i += kSortThreads) {
      Record record{tile_keys[i], {}};
      if constexpr (has_position<Position>) record.position = tile_positions[i];
      const int64_t at = places[digit_of(record.key, a.digit)] + i;
      if (is_last) {
        store_sorted<Kind>(a.order, start.of[1], at, record);
      } else {
        store_run(to, line * lines.length + at, record);
      }
    }
    __syncthreads();  // the tile is free
  }
}

}  // namespace cuop::jit
