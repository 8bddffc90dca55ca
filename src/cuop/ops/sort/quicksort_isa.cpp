#include "cuop/ops/sort/quicksort_kernels.h"

#ifdef __AVX2__
#include <immintrin.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <limits>
#include <type_traits>

#include "cuop/core/interrupt.h"
#include "cuop/core/long_loop.h"
#endif

namespace cuop::kernels {

#ifdef __AVX2__
namespace {

using Register = __m256i;

template <class Number>
inline constexpr int kLanes = static_cast<int>(sizeof(Register) / sizeof(Number));
constexpr int kRegisters = 8;       // of a block
constexpr int kMostRegisters = 32;  // that a network sorts
template <class Number>
inline constexpr int kBlock = kRegisters* kLanes<Number>;
template <class Number>
inline constexpr int kShort = kMostRegisters* kLanes<Number>;

template <class Number>
Register load(const Number* from) {
  return _mm256_loadu_si256(reinterpret_cast<const Register*>(from));
}
template <class Number>
void store(Number* to, Register r) {
  _mm256_storeu_si256(reinterpret_cast<Register*>(to), r);
}

/// What differs between numbers of 4 and of 8 bytes.
template <class Number>
struct Lanes;

template <>
struct Lanes<int32_t> {
  static Register all(int32_t number) { return _mm256_set1_epi32(number); }
  static Register min(Register a, Register b) { return _mm256_min_epi32(a, b); }
  static Register max(Register a, Register b) { return _mm256_max_epi32(a, b); }
  /// A bit for each lane.
  static unsigned are_above(Register a, Register b) {
    const __m256 above = _mm256_castsi256_ps(_mm256_cmpgt_epi32(a, b));
    return static_cast<unsigned>(_mm256_movemask_ps(above));
  }
  static Register reversed(Register r) {
    return _mm256_permutevar8x32_epi32(r, _mm256_set_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  /// Lanes that are so far apart in the place of each other.
  template <int Distance>
  static Register exchanged(Register r) {
    if constexpr (Distance == 4) return _mm256_permute2x128_si256(r, r, 1);
    return _mm256_shuffle_epi32(r, Distance == 2 ? 0x4e : 0xb1);
  }
  /// Of each two lanes so far apart the first of `low` and the second of `high`.
  template <int Distance>
  static Register joined(Register low, Register high) {
    constexpr int kOfHigh = Distance == 4 ? 0xf0 : Distance == 2 ? 0xcc : 0xaa;
    return _mm256_blend_epi32(low, high, kOfHigh);
  }
  /// Lane c of all registers becomes register c.
  static void transpose(Register* r) {
    Register pairs[kRegisters], fours[kRegisters];
    for (int i = 0; i < kRegisters; i += 2) {
      pairs[i] = _mm256_unpacklo_epi32(r[i], r[i + 1]);
      pairs[i + 1] = _mm256_unpackhi_epi32(r[i], r[i + 1]);
    }
    for (int i = 0; i < kRegisters; i += 4) {
      for (int j = 0; j < 2; ++j) {
        fours[i + 2 * j] = _mm256_unpacklo_epi64(pairs[i + j], pairs[i + j + 2]);
        fours[i + 2 * j + 1] = _mm256_unpackhi_epi64(pairs[i + j], pairs[i + j + 2]);
      }
    }
    for (int i = 0; i < 4; ++i) {
      r[i] = _mm256_permute2x128_si256(fours[i], fours[i + 4], 0x20);
      r[i + 4] = _mm256_permute2x128_si256(fours[i], fours[i + 4], 0x31);
    }
  }
};

template <>
struct Lanes<int64_t> {
  static Register all(int64_t number) { return _mm256_set1_epi64x(number); }
#ifdef __AVX512VL__
  static Register min(Register a, Register b) { return _mm256_min_epi64(a, b); }
  static Register max(Register a, Register b) { return _mm256_max_epi64(a, b); }
#else
  static Register chosen(Register a, Register b, Register is_b) {
    const __m256d chosen =
        _mm256_blendv_pd(_mm256_castsi256_pd(a), _mm256_castsi256_pd(b), _mm256_castsi256_pd(is_b));
    return _mm256_castpd_si256(chosen);
  }
  static Register min(Register a, Register b) { return chosen(a, b, _mm256_cmpgt_epi64(a, b)); }
  static Register max(Register a, Register b) { return chosen(b, a, _mm256_cmpgt_epi64(a, b)); }
#endif
  static unsigned are_above(Register a, Register b) {
    const __m256d above = _mm256_castsi256_pd(_mm256_cmpgt_epi64(a, b));
    return static_cast<unsigned>(_mm256_movemask_pd(above));
  }
  static Register reversed(Register r) { return _mm256_permute4x64_epi64(r, 0x1b); }
  template <int Distance>
  static Register exchanged(Register r) {
    if constexpr (Distance == 2) return _mm256_permute4x64_epi64(r, 0x4e);
    return _mm256_shuffle_epi32(r, 0x4e);
  }
  template <int Distance>
  static Register joined(Register low, Register high) {
    return _mm256_blend_epi32(low, high, Distance == 2 ? 0xf0 : 0xcc);
  }
  /// Lane c of all registers becomes registers 2 c and 2 c + 1.
  static void transpose(Register* r) {
    Register columns[kRegisters];
    for (int half = 0; half < 2; ++half) {
      const Register* rows = r + 4 * half;
      const Register even_top = _mm256_unpacklo_epi64(rows[0], rows[1]);
      const Register odd_top = _mm256_unpackhi_epi64(rows[0], rows[1]);
      const Register even_low = _mm256_unpacklo_epi64(rows[2], rows[3]);
      const Register odd_low = _mm256_unpackhi_epi64(rows[2], rows[3]);
      columns[0 + half] = _mm256_permute2x128_si256(even_top, even_low, 0x20);
      columns[2 + half] = _mm256_permute2x128_si256(odd_top, odd_low, 0x20);
      columns[4 + half] = _mm256_permute2x128_si256(even_top, even_low, 0x31);
      columns[6 + half] = _mm256_permute2x128_si256(odd_top, odd_low, 0x31);
    }
    std::memcpy(r, columns, sizeof columns);
  }
};

template <class Number>
void order(Register& a, Register& b) {
  const Register least = Lanes<Number>::min(a, b);
  b = Lanes<Number>::max(a, b);
  a = least;
}

template <class Number, int Distance>
Register ordered_within(Register r) {
  using L = Lanes<Number>;
  const Register other = L::template exchanged<Distance>(r);
  return L::template joined<Distance>(L::min(r, other), L::max(r, other));
}

/// Sorts what rises and then falls, or is that in turn (Batcher's bitonic merge).
template <class Number, int Count>
void finish_run(Register* r) {
#pragma GCC unroll 32
  for (int distance = Count / 2; distance > 0; distance /= 2) {
#pragma GCC unroll 32
    for (int i = 0; i < Count; ++i) {
      if ((i & distance) == 0) order<Number>(r[i], r[i + distance]);
    }
  }
#pragma GCC unroll 32
  for (int i = 0; i < Count; ++i) {
    if constexpr (kLanes<Number> == 8) r[i] = ordered_within<Number, 4>(r[i]);
    r[i] = ordered_within<Number, 2>(r[i]);
    r[i] = ordered_within<Number, 1>(r[i]);
  }
}

/// Two sorted runs of half as many registers become one.
template <class Number, int Count>
void merge_runs(Register* r) {
  constexpr int kHalf = Count / 2;
  Register falling[kHalf];
#pragma GCC unroll 32
  for (int i = 0; i < kHalf; ++i) falling[i] = Lanes<Number>::reversed(r[Count - 1 - i]);
#pragma GCC unroll 32
  for (int i = 0; i < kHalf; ++i) {
    r[kHalf + i] = Lanes<Number>::max(r[i], falling[i]);
    r[i] = Lanes<Number>::min(r[i], falling[i]);
  }
  finish_run<Number, kHalf>(r);
  finish_run<Number, kHalf>(r + kHalf);
}

template <class Number>
void sort_block(Register* r) {
  // The network of 19 steps for eight, of each lane.
  constexpr int kSteps[][2] = {{0, 2}, {1, 3}, {4, 6}, {5, 7}, {0, 4}, {1, 5}, {2, 6},
                               {3, 7}, {0, 1}, {2, 3}, {4, 5}, {6, 7}, {2, 4}, {3, 5},
                               {1, 4}, {3, 6}, {1, 2}, {3, 4}, {5, 6}};
#pragma GCC unroll 32
  for (const auto& step : kSteps) order<Number>(r[step[0]], r[step[1]]);
  Lanes<Number>::transpose(r);
  if constexpr (kLanes<Number> == 8) {
#pragma GCC unroll 32
    for (int i = 0; i < kRegisters; i += 2) merge_runs<Number, 2>(r + i);
  }
  merge_runs<Number, 4>(r);
  merge_runs<Number, 4>(r + 4);
  merge_runs<Number, kRegisters>(r);
}

/// Of up to so many registers.
template <class Number, int Count>
void sort_registers(Number* numbers, int64_t count) {
  constexpr int64_t kLane = kLanes<Number>;
  Number padded[Count * kLane];
  std::memcpy(padded, numbers, static_cast<size_t>(count) * sizeof(Number));
  for (int64_t i = count; i < Count * kLane; ++i) padded[i] = std::numeric_limits<Number>::max();
  Register r[Count];
  for (int i = 0; i < Count; ++i) r[i] = load(padded + i * kLane);
  // What is padding alone is in its place.
  for (int i = 0; i < Count && i * kLane < count; i += kRegisters) sort_block<Number>(r + i);
  if constexpr (Count >= 16) {
    for (int i = 0; i < Count && (i + 8) * kLane < count; i += 16) merge_runs<Number, 16>(r + i);
  }
  if constexpr (Count >= 32) merge_runs<Number, 32>(r);
  for (int i = 0; i < Count; ++i) store(padded + i * kLane, r[i]);
  std::memcpy(numbers, padded, static_cast<size_t>(count) * sizeof(Number));
}

/// Of up to kShort.
template <class Number>
void sort_short(Number* numbers, int64_t count) {
  if (count <= kBlock<Number>) return sort_registers<Number, kRegisters>(numbers, count);
  if (count <= 2 * kBlock<Number>) return sort_registers<Number, 2 * kRegisters>(numbers, count);
  sort_registers<Number, kMostRegisters>(numbers, count);
}

/// For each mask of lanes their words of 4 bytes, and then those of the other lanes.
template <int Lanes>
constexpr auto compressions() {
  std::array<std::array<uint8_t, 8>, size_t{1} << Lanes> all{};
  constexpr unsigned kWords = 8 / Lanes;
  for (unsigned mask = 0; mask < all.size(); ++mask) {
    size_t next = 0;
    for (const unsigned wanted : {1u, 0u}) {
      for (unsigned lane = 0; lane < Lanes; ++lane) {
        if ((mask >> lane & 1u) != wanted) continue;
        for (unsigned word = 0; word < kWords; ++word) {
          all[mask][next++] = static_cast<uint8_t>(lane * kWords + word);
        }
      }
    }
  }
  return all;
}

template <class Number>
Register compressed(Register r, unsigned mask) {
  alignas(64) static constexpr auto kWords = compressions<kLanes<Number>>();
  const auto* words = reinterpret_cast<const __m128i*>(kWords[mask].data());
  return _mm256_permutevar8x32_epi32(r, _mm256_cvtepu8_epi32(_mm_loadl_epi64(words)));
}

/// Puts the numbers below the pivot first, and with `WithEqual` those that equal it; how many.
template <class Number, bool WithEqual>
int64_t partition(Number* numbers, int64_t count, Number pivot) {
  // Registers that are read at a time from the end that has less room for what is to be stored;
  // those of both ends that are read first make that room.
  constexpr int kUnrolled = 4, kStep = kUnrolled * kLanes<Number>;
  const Register wall = Lanes<Number>::all(pivot);
  int64_t low = 0, high = count;  // what is not read yet
  for (int64_t rest = count % kStep; rest > 0; --rest) {
    const Number number = numbers[low];
    if (WithEqual ? number <= pivot : number < pivot) {
      ++low;
    } else {
      numbers[low] = numbers[--high];
      numbers[high] = number;
    }
  }
  int64_t low_end = low, high_begin = high - kLanes<Number>;
  const auto put = [&](Register r) {
    constexpr unsigned kAll = (1u << kLanes<Number>)-1;
    const unsigned is_low =
        WithEqual ? kAll & ~Lanes<Number>::are_above(r, wall) : Lanes<Number>::are_above(wall, r);
    const Register parted = compressed<Number>(r, is_low);
    const int lows = std::popcount(is_low);
    store(numbers + low_end, parted);
    store(numbers + high_begin, parted);
    low_end += lows;
    high_begin -= kLanes<Number> - lows;
  };
  const auto fetch = [](const Number* from, Register(&r)[kUnrolled]) {
    for (int i = 0; i < kUnrolled; ++i) r[i] = load(from + i * kLanes<Number>);
  };
  Register first[kUnrolled], last[kUnrolled], some[kUnrolled];
  const bool is_one = high - low == kStep;
  if (low == high) return low;
  fetch(numbers + low, first);
  fetch(numbers + high - kStep, last);
  low += kStep;
  if (!is_one) high -= kStep;
  while (low != high) {
    if (high_begin + kLanes<Number> - high < low - low_end) {
      high -= kStep;
      fetch(numbers + high, some);
    } else {
      fetch(numbers + low, some);
      low += kStep;
    }
    for (const Register& r : some) put(r);
  }
  for (const Register& r : first) put(r);
  if (is_one) return low_end;
  for (const Register& r : last) put(r);
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
void write(const Number* numbers, int64_t count, jit::NumberKind kind, void* values) {
  using Key = std::make_unsigned_t<Number>;
  constexpr auto kTop = static_cast<Key>(std::numeric_limits<Number>::min());
  const auto decode_all = [&]<jit::NumberKind Kind>() {
    each_of<Key>(numbers, count, values,
                 [](Key number) { return jit::decode_key<Kind>(static_cast<Key>(number ^ kTop)); });
  };
  using enum jit::NumberKind;
  if (kind == kFloating) return decode_all.template operator()<kFloating>();
  if (kind == kSigned) return decode_all.template operator()<kSigned>();
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
