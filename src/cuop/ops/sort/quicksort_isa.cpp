#include "cuop/ops/sort/quicksort_kernels.h"

#ifdef __AVX2__
#include <bit>
#include <cstddef>
#include <cstring>
#include <limits>
#include <type_traits>

#include "cuop/core/interrupt.h"
#include "cuop/core/long_loop.h"
#include "cuop/ops/sort/sort_lanes_isa.h"
#endif

namespace cuop::kernels {

#ifdef __AVX2__
namespace {

/// The registers for all but short lines, and those for these.
template <class Number>
using Wide = SortLanes<Number, kSortBytes>;
template <class Number>
using Narrow = SortLanes<Number, 32>;

constexpr int kMostRegisters = kSortBytes == 64 ? 16 : 32;  // that a network sorts
template <class Number>
inline constexpr int kBlock = kSortBlock* Wide<Number>::kLanes;
template <class Number>
inline constexpr int kShort = kMostRegisters* Wide<Number>::kLanes;

template <class L>
void order(typename L::Register& a, typename L::Register& b) {
  const typename L::Register least = L::min(a, b);
  b = L::max(a, b);
  a = least;
}

/// Sorts what rises and then falls, or is that in turn (Batcher's bitonic merge).
template <class L, int Count>
void finish_run(typename L::Register* r) {
#pragma GCC unroll 32
  for (int distance = Count / 2; distance > 0; distance /= 2) {
#pragma GCC unroll 32
    for (int i = 0; i < Count; ++i) {
      if ((i & distance) == 0) order<L>(r[i], r[i + distance]);
    }
  }
#pragma GCC unroll 32
  for (int i = 0; i < Count; ++i) {
    if constexpr (L::kLanes > 8) r[i] = L::template ordered<8>(r[i]);
    if constexpr (L::kLanes > 4) r[i] = L::template ordered<4>(r[i]);
    r[i] = L::template ordered<2>(r[i]);
    r[i] = L::template ordered<1>(r[i]);
  }
}

/// Two sorted runs of half as many registers become one.
template <class L, int Count>
void merge_runs(typename L::Register* r) {
  constexpr int kHalf = Count / 2;
  typename L::Register falling[kHalf];
#pragma GCC unroll 32
  for (int i = 0; i < kHalf; ++i) falling[i] = L::reversed(r[Count - 1 - i]);
#pragma GCC unroll 32
  for (int i = 0; i < kHalf; ++i) {
    r[kHalf + i] = L::max(r[i], falling[i]);
    r[i] = L::min(r[i], falling[i]);
  }
  finish_run<L, kHalf>(r);
  finish_run<L, kHalf>(r + kHalf);
}

template <class L>
void sort_block(typename L::Register* r) {
  // The network of 19 steps for eight, of each lane.
  constexpr int kSteps[][2] = {{0, 2}, {1, 3}, {4, 6}, {5, 7}, {0, 4}, {1, 5}, {2, 6},
                               {3, 7}, {0, 1}, {2, 3}, {4, 5}, {6, 7}, {2, 4}, {3, 5},
                               {1, 4}, {3, 6}, {1, 2}, {3, 4}, {5, 6}};
#pragma GCC unroll 32
  for (const auto& step : kSteps) order<L>(r[step[0]], r[step[1]]);
  L::turn(r);
  if constexpr (L::kRun == 1) {
#pragma GCC unroll 32
    for (int i = 0; i < kSortBlock; i += 2) merge_runs<L, 2>(r + i);
  }
  merge_runs<L, 4>(r);
  merge_runs<L, 4>(r + 4);
  merge_runs<L, kSortBlock>(r);
}

/// Of up to so many registers.
template <class L, int Count, class Number>
void sort_registers(Number* numbers, int64_t count) {
  constexpr int64_t kLane = L::kLanes;
  typename L::Register r[Count];
  for (int i = 0; i < Count; ++i) {
    const int64_t left = count - i * kLane;
    r[i] = left >= kLane ? L::load(numbers + i * kLane)
           : left > 0    ? L::load_part(numbers + i * kLane, left)
                         : L::all(std::numeric_limits<Number>::max());
  }
  // What is padding alone is in its place.
  for (int i = 0; i < Count && i * kLane < count; i += kSortBlock) sort_block<L>(r + i);
  if constexpr (Count >= 16) {
    for (int i = 0; i < Count && (i + 8) * kLane < count; i += 16) merge_runs<L, 16>(r + i);
  }
  if constexpr (Count >= 32) merge_runs<L, 32>(r);
  for (int i = 0; i < Count && i * kLane < count; ++i) {
    const int64_t left = count - i * kLane;
    if (left >= kLane) {
      L::store(numbers + i * kLane, r[i]);
    } else {
      L::store_part(numbers + i * kLane, r[i], left);
    }
  }
}

/// Of up to kShort.
template <class Number>
void sort_short(Number* numbers, int64_t count) {
  using W = Wide<Number>;
  if (count <= kSortBlock * Narrow<Number>::kLanes) {
    return sort_registers<Narrow<Number>, kSortBlock>(numbers, count);
  }
  if (count <= kBlock<Number>) return sort_registers<W, kSortBlock>(numbers, count);
  if (count <= 2 * kBlock<Number>) return sort_registers<W, 2 * kSortBlock>(numbers, count);
  if constexpr (kMostRegisters > 16) sort_registers<W, kMostRegisters>(numbers, count);
}

/// Puts the numbers below the pivot first, and with `WithEqual` those that equal it; how many.
template <class Number, bool WithEqual>
int64_t partition(Number* numbers, int64_t count, Number pivot) {
  using L = Wide<Number>;
  // Registers that are read at a time from the end that has less room for what is to be stored;
  // those of both ends that are read first make that room.
  constexpr int kUnrolled = 4, kStep = kUnrolled * L::kLanes;
  const typename L::Register wall = L::all(pivot);
  int64_t low = 0, high = count;  // what is not read yet
  for (int64_t rest = count % L::kLanes; rest > 0; --rest) {
    const Number number = numbers[low], last = numbers[high - 1];
    const bool is_low = WithEqual ? number <= pivot : number < pivot;
    numbers[low] = is_low ? number : last;
    numbers[high - 1] = is_low ? last : number;
    low += is_low ? 1 : 0;
    high -= is_low ? 0 : 1;
  }
  int64_t low_end = low, high_begin = high;
  // Registers that are less than a step are set aside, and put into what is left at the end.
  Number rest[kStep];
  const int64_t aside = (high - low) % kStep;
  high -= aside;
  std::memcpy(rest, numbers + high, static_cast<size_t>(aside) * sizeof(Number));
  const auto put = [&](typename L::Register r) {
    const int lows = L::template put<WithEqual>(r, wall, numbers + low_end, numbers + high_begin);
    low_end += lows;
    high_begin -= L::kLanes - lows;
  };
  const auto fetch = [](const Number* from, typename L::Register(&r)[kUnrolled]) {
    for (int i = 0; i < kUnrolled; ++i) r[i] = L::load(from + i * L::kLanes);
  };
  typename L::Register first[kUnrolled], last[kUnrolled], some[kUnrolled];
  const bool is_one = high - low == kStep;
  fetch(numbers + low, first);
  fetch(numbers + high - kStep, last);
  low += kStep;
  if (!is_one) high -= kStep;
  while (low != high) {
    if (high_begin - high < low - low_end) {
      high -= kStep;
      fetch(numbers + high, some);
    } else {
      fetch(numbers + low, some);
      low += kStep;
    }
    for (const typename L::Register& r : some) put(r);
  }
  for (const typename L::Register& r : first) put(r);
  if (!is_one) {
    for (const typename L::Register& r : last) put(r);
  }
  for (int64_t i = 0; i < aside; i += L::kLanes) put(L::load(rest + i));
  return low_end;
}

template <class Number>
Number median(Number a, Number b, Number c) {
  const Number least = a < b ? a : b, most = a < b ? b : a;
  return c < least ? least : c < most ? c : most;
}

template <class Number>
Number pivot_of(const Number* numbers, int64_t count) {
  constexpr int64_t kLong = 2048;
  if (count < kLong) {
    const int64_t step = count / 9;
    const auto at = [&](int64_t i) { return numbers[step / 2 + i * step]; };
    return median(median(at(0), at(1), at(2)), median(at(3), at(4), at(5)),
                  median(at(6), at(7), at(8)));
  }
  Number some[kBlock<Number>];
  const int64_t step = count / kBlock<Number>;
  for (int64_t i = 0; i < kBlock<Number>; ++i) some[i] = numbers[step / 2 + i * step];
  sort_short(some, kBlock<Number>);
  return some[kBlock<Number> / 2];
}

/// How many are first, and whether those all equal the least.
struct Parted {
  int64_t low;
  bool are_equal;
};

template <class Number>
Parted parted(Number* numbers, int64_t count) {
  const Number pivot = pivot_of(numbers, count);
  const int64_t below = partition<Number, false>(numbers, count, pivot);
  if (below > 0) return {below, false};
  return {partition<Number, true>(numbers, count, pivot), true};
}

template <class Number>
int64_t split(Number* numbers, int64_t count) {
  return parted(numbers, count).low;
}

template <class Number>
void sort_within(Number* numbers, int64_t count, int splits) {
  while (count > kShort<Number>) {
    if (count > kLoopPiece) check_interrupt();
    if (splits-- == 0) return sort_by_comparing(numbers, count);
    const auto [low, are_equal] = parted(numbers, count);
    if (are_equal || low < count - low) {  // the shorter part first: few are begun at a time
      if (!are_equal) sort_within(numbers, low, splits);
      numbers += low;
      count -= low;
    } else {
      sort_within(numbers + low, count - low, splits);
      count = low;
    }
  }
  if (count > 1) sort_short(numbers, count);
}

template <class Number>
void sort(Number* numbers, int64_t count) {
  const int digits = 64 - std::countl_zero(static_cast<uint64_t>(count));
  sort_within(numbers, count, 2 * digits);
}

/// to[i] <- make(from[i]), of bits in memory that may be that of anything.
template <class Key, class Make>
void each_of(const void* from, int64_t count, void* to, Make make) {
  for (int64_t i = 0; i < count; ++i) {
    const size_t at = static_cast<size_t>(i) * sizeof(Key);
    Key bits;
    std::memcpy(&bits, static_cast<const std::byte*>(from) + at, sizeof bits);
    bits = make(bits);
    std::memcpy(static_cast<std::byte*>(to) + at, &bits, sizeof bits);
  }
}

/// Of keys, whose order is that of unsigned numbers, the top bit is turned.
template <class Number>
void read(const void* values, int64_t count, jit::NumberKind kind, Number* numbers) {
  using Key = std::make_unsigned_t<Number>;
  using Float = std::conditional_t<sizeof(Number) == 4, float, double>;
  constexpr auto kInfinity = std::bit_cast<Key>(std::numeric_limits<Float>::infinity());
  constexpr auto kTop = static_cast<Key>(std::numeric_limits<Number>::min());
  const auto encode_all = [&]<jit::NumberKind Kind>() {
    each_of<Key>(values, count, numbers, [](Key bits) {
      return static_cast<Key>(jit::encode_key<Kind, false>(bits, kInfinity) ^ kTop);
    });
  };
  using enum jit::NumberKind;
  if (kind == kFloating) return encode_all.template operator()<kFloating>();
  if (kind == kSigned) return encode_all.template operator()<kSigned>();
  encode_all.template operator()<kUnsigned>();
}

template <class Number>
void write(Number* numbers, int64_t count, jit::NumberKind kind) {
  using Key = std::make_unsigned_t<Number>;
  constexpr auto kTop = static_cast<Key>(std::numeric_limits<Number>::min());
  const auto decode_all = [&]<jit::NumberKind Kind>() {
    each_of<Key>(numbers, count, numbers,
                 [](Key number) { return jit::decode_key<Kind>(static_cast<Key>(number ^ kTop)); });
  };
  using enum jit::NumberKind;
  if (kind == kFloating) return decode_all.template operator()<kFloating>();
  if (kind == kSigned) return;  // whose numbers they are
  decode_all.template operator()<kUnsigned>();
}

template <class Number>
constexpr Quicksort<Number> kQuicksort{&read<Number>, &write<Number>, &sort<Number>,
                                       &split<Number>};

}  // namespace
#endif

template <class Level, class Number>
const Quicksort<Number>* quicksort() {
#ifdef __AVX2__
  return &kQuicksort<Number>;
#else
  return nullptr;
#endif
}
template const Quicksort<int32_t>* quicksort<isa::CUOP_ISA, int32_t>();
template const Quicksort<int64_t>* quicksort<isa::CUOP_ISA, int64_t>();

}  // namespace cuop::kernels
