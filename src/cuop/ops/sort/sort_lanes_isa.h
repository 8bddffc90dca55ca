// Internal: registers of numbers that are sorted, of 32 bytes with AVX2 and of 64 with AVX-512.
#pragma once

#ifdef __AVX2__
#include <immintrin.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

namespace cuop::kernels {

constexpr int kSortBlock = 8;  ///< registers whose lanes are sorted at first, and then turned

/// int32_t or int64_t in registers of so many bytes:
///   min, max        of each lane
///   reversed        the last lane first
///   ordered<D>      of each two lanes that lie D apart the lesser one first
///   turn            a block whose lanes are sorted down its registers: each kRun registers are
///   load_part       the first `count` lanes, the largest number in others; store_part these alone
///   put<WithEqual>  stores the numbers below the wall, or those up to it, behind `low`, the others
///                   before `high`, with room for a register at both; how many are low
template <class Number, int Bytes>
struct SortLanes;

/// What registers of 32 bytes have in common.
template <class Number>
struct HalfLanes {
  using Register = __m256i;
  static constexpr int kLanes = static_cast<int>(sizeof(Register) / sizeof(Number));

  static Register load(const Number* from) {
    return _mm256_loadu_si256(reinterpret_cast<const Register*>(from));
  }
  static void store(Number* to, Register r) {
    _mm256_storeu_si256(reinterpret_cast<Register*>(to), r);
  }
  static Register load_part(const Number* from, int64_t count) {
    Number lanes[kLanes];
    for (Number& lane : lanes) lane = std::numeric_limits<Number>::max();
    std::memcpy(lanes, from, static_cast<size_t>(count) * sizeof(Number));
    return load(lanes);
  }
  static void store_part(Number* to, Register r, int64_t count) {
    Number lanes[kLanes];
    store(lanes, r);
    std::memcpy(to, lanes, static_cast<size_t>(count) * sizeof(Number));
  }

  /// Stores the lanes of the mask, and behind them the others, at both ends.
  static int put_by(Register r, unsigned mask, Number* low, Number* high) {
    alignas(64) static constexpr auto kWords = compressions();
    const auto* words = reinterpret_cast<const __m128i*>(kWords[mask].data());
    const Register parted =
        _mm256_permutevar8x32_epi32(r, _mm256_cvtepu8_epi32(_mm_loadl_epi64(words)));
    store(low, parted);
    store(high - kLanes, parted);
    return std::popcount(mask);
  }

 private:
  /// For each mask of lanes their words of 4 bytes, and then those of the other lanes.
  static constexpr auto compressions() {
    std::array<std::array<uint8_t, 8>, size_t{1} << kLanes> all{};
    constexpr unsigned kWords = 8 / kLanes;
    for (unsigned mask = 0; mask < all.size(); ++mask) {
      size_t next = 0;
      for (const unsigned wanted : {1u, 0u}) {
        for (unsigned lane = 0; lane < kLanes; ++lane) {
          if ((mask >> lane & 1u) != wanted) continue;
          for (unsigned word = 0; word < kWords; ++word) {
            all[mask][next++] = static_cast<uint8_t>(lane * kWords + word);
          }
        }
      }
    }
    return all;
  }
};

template <>
struct SortLanes<int32_t, 32> : HalfLanes<int32_t> {
  static Register all(int32_t number) { return _mm256_set1_epi32(number); }
  static Register min(Register a, Register b) { return _mm256_min_epi32(a, b); }
  static Register max(Register a, Register b) { return _mm256_max_epi32(a, b); }
  static Register reversed(Register r) {
    return _mm256_permutevar8x32_epi32(r, _mm256_set_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  template <int Distance>
  static Register ordered(Register r) {
    constexpr int kOfMax = Distance == 4 ? 0xf0 : Distance == 2 ? 0xcc : 0xaa;
    Register other;
    if constexpr (Distance == 4) {
      other = _mm256_permute2x128_si256(r, r, 1);
    } else {
      other = _mm256_shuffle_epi32(r, Distance == 2 ? 0x4e : 0xb1);
    }
    return _mm256_blend_epi32(min(r, other), max(r, other), kOfMax);
  }
  static constexpr int kRun = 1;
  static void turn(Register* r) {
    Register pairs[kSortBlock], fours[kSortBlock];
    for (int i = 0; i < kSortBlock; i += 2) {
      pairs[i] = _mm256_unpacklo_epi32(r[i], r[i + 1]);
      pairs[i + 1] = _mm256_unpackhi_epi32(r[i], r[i + 1]);
    }
    for (int i = 0; i < kSortBlock; i += 4) {
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
  template <bool WithEqual>
  static int put(Register r, Register wall, int32_t* low, int32_t* high) {
    return put_by(r, WithEqual ? 0xffu & ~above(r, wall) : above(wall, r), low, high);
  }

 private:
  /// A bit for each lane.
  static unsigned above(Register a, Register b) {
    const __m256 is_above = _mm256_castsi256_ps(_mm256_cmpgt_epi32(a, b));
    return static_cast<unsigned>(_mm256_movemask_ps(is_above));
  }
};

template <>
struct SortLanes<int64_t, 32> : HalfLanes<int64_t> {
  static Register all(int64_t number) { return _mm256_set1_epi64x(number); }
#ifdef __AVX512VL__
  static Register min(Register a, Register b) { return _mm256_min_epi64(a, b); }
  static Register max(Register a, Register b) { return _mm256_max_epi64(a, b); }
#else
  static Register min(Register a, Register b) { return chosen(a, b, _mm256_cmpgt_epi64(a, b)); }
  static Register max(Register a, Register b) { return chosen(b, a, _mm256_cmpgt_epi64(a, b)); }
#endif
  static Register reversed(Register r) { return _mm256_permute4x64_epi64(r, 0x1b); }
  template <int Distance>
  static Register ordered(Register r) {
    Register other;
    if constexpr (Distance == 2) {
      other = _mm256_permute4x64_epi64(r, 0x4e);
    } else {
      other = _mm256_shuffle_epi32(r, 0x4e);
    }
    return _mm256_blend_epi32(min(r, other), max(r, other), Distance == 2 ? 0xf0 : 0xcc);
  }
  static constexpr int kRun = 2;
  static void turn(Register* r) {
    Register columns[kSortBlock];
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
  template <bool WithEqual>
  static int put(Register r, Register wall, int64_t* low, int64_t* high) {
    return put_by(r, WithEqual ? 0xfu & ~above(r, wall) : above(wall, r), low, high);
  }

 private:
  static Register chosen(Register a, Register b, Register is_b) {
    const __m256d chosen =
        _mm256_blendv_pd(_mm256_castsi256_pd(a), _mm256_castsi256_pd(b), _mm256_castsi256_pd(is_b));
    return _mm256_castpd_si256(chosen);
  }
  static unsigned above(Register a, Register b) {
    const __m256d is_above = _mm256_castsi256_pd(_mm256_cmpgt_epi64(a, b));
    return static_cast<unsigned>(_mm256_movemask_pd(is_above));
  }
};

#ifdef __AVX512F__
/// What registers of 64 bytes have in common. Forms with masks, as those without warn of what they
/// leave undefined.
struct FullLanes {
  using Register = __m512i;
  /// 128 bits in the place of others.
  template <int Order>
  static Register in_order(Register r) {
    return _mm512_maskz_shuffle_i64x2(0xff, r, r, Order);
  }
  template <_MM_PERM_ENUM Order>
  static Register words_in_order(Register r) {
    return _mm512_maskz_shuffle_epi32(0xffff, r, Order);
  }
  static Register low_pairs(Register a, Register b) {
    return _mm512_maskz_unpacklo_epi64(0xff, a, b);
  }
  static Register high_pairs(Register a, Register b) {
    return _mm512_maskz_unpackhi_epi64(0xff, a, b);
  }
};

template <>
struct SortLanes<int32_t, 64> : FullLanes {
  static constexpr int kLanes = 16, kRun = 1;
  static constexpr __mmask16 kAll = 0xffff;

  static Register load(const int32_t* from) { return _mm512_loadu_si512(from); }
  static void store(int32_t* to, Register r) { _mm512_storeu_si512(to, r); }
  static Register load_part(const int32_t* from, int64_t count) {
    return _mm512_mask_loadu_epi32(all(std::numeric_limits<int32_t>::max()), first(count), from);
  }
  static void store_part(int32_t* to, Register r, int64_t count) {
    _mm512_mask_storeu_epi32(to, first(count), r);
  }
  static Register all(int32_t number) { return _mm512_set1_epi32(number); }
  static Register min(Register a, Register b) { return _mm512_maskz_min_epi32(kAll, a, b); }
  static Register max(Register a, Register b) { return _mm512_maskz_max_epi32(kAll, a, b); }
  static Register reversed(Register r) {
    const Register order = _mm512_set_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return _mm512_maskz_permutexvar_epi32(kAll, order, r);
  }
  template <int Distance>
  static Register ordered(Register r) {
    if constexpr (Distance == 8) return ordered_by<0xff00>(r, in_order<0x4e>(r));
    if constexpr (Distance == 4) return ordered_by<0xf0f0>(r, in_order<0xb1>(r));
    if constexpr (Distance == 2) return ordered_by<0xcccc>(r, words_in_order<_MM_PERM_BADC>(r));
    return ordered_by<0xaaaa>(r, words_in_order<_MM_PERM_CDAB>(r));
  }
  static void turn(Register* r) {
    Register pairs[kSortBlock], fours[kSortBlock];
    for (int i = 0; i < kSortBlock; i += 2) {
      pairs[i] = _mm512_maskz_unpacklo_epi32(kAll, r[i], r[i + 1]);
      pairs[i + 1] = _mm512_maskz_unpackhi_epi32(kAll, r[i], r[i + 1]);
    }
    for (int i = 0; i < kSortBlock; i += 4) {
      for (int j = 0; j < 2; ++j) {
        fours[i + 2 * j] = low_pairs(pairs[i + j], pairs[i + j + 2]);
        fours[i + 2 * j + 1] = high_pairs(pairs[i + j], pairs[i + j + 2]);
      }
    }
    // Two columns each, of which the second falls, so that the two are merged.
    const Register even = _mm512_set_epi32(4, 5, 6, 7, 20, 21, 22, 23, 19, 18, 17, 16, 3, 2, 1, 0);
    const Register odd =
        _mm512_set_epi32(12, 13, 14, 15, 28, 29, 30, 31, 27, 26, 25, 24, 11, 10, 9, 8);
    for (int i = 0; i < 4; ++i) {
      r[i] = _mm512_permutex2var_epi32(fours[i], even, fours[i + 4]);
      r[i + 4] = _mm512_permutex2var_epi32(fours[i], odd, fours[i + 4]);
    }
    for (int i = 0; i < kSortBlock; ++i) {
      r[i] = ordered<1>(ordered<2>(ordered<4>(ordered<8>(r[i]))));
    }
  }
  template <bool WithEqual>
  static int put(Register r, Register wall, int32_t* low, int32_t* high) {
    const __mmask16 is_low =
        _mm512_cmp_epi32_mask(r, wall, WithEqual ? _MM_CMPINT_LE : _MM_CMPINT_LT);
    const int lows = std::popcount(static_cast<unsigned>(is_low));
    store(low, _mm512_maskz_compress_epi32(is_low, r));
    const auto is_high = static_cast<__mmask16>(~is_low);
    _mm512_mask_storeu_epi32(high - (kLanes - lows), first(kLanes - lows),
                             _mm512_maskz_compress_epi32(is_high, r));
    return lows;
  }

 private:
  static __mmask16 first(int64_t count) { return static_cast<__mmask16>((1u << count) - 1); }
  template <__mmask16 OfMax>
  static Register ordered_by(Register r, Register other) {
    return _mm512_mask_max_epi32(min(r, other), OfMax, r, other);
  }
};

template <>
struct SortLanes<int64_t, 64> : FullLanes {
  static constexpr int kLanes = 8, kRun = 1;
  static constexpr __mmask8 kAll = 0xff;

  static Register load(const int64_t* from) { return _mm512_loadu_si512(from); }
  static void store(int64_t* to, Register r) { _mm512_storeu_si512(to, r); }
  static Register load_part(const int64_t* from, int64_t count) {
    return _mm512_mask_loadu_epi64(all(std::numeric_limits<int64_t>::max()), first(count), from);
  }
  static void store_part(int64_t* to, Register r, int64_t count) {
    _mm512_mask_storeu_epi64(to, first(count), r);
  }
  static Register all(int64_t number) { return _mm512_set1_epi64(number); }
  static Register min(Register a, Register b) { return _mm512_maskz_min_epi64(kAll, a, b); }
  static Register max(Register a, Register b) { return _mm512_maskz_max_epi64(kAll, a, b); }
  static Register reversed(Register r) {
    return _mm512_maskz_permutexvar_epi64(kAll, _mm512_set_epi64(0, 1, 2, 3, 4, 5, 6, 7), r);
  }
  template <int Distance>
  static Register ordered(Register r) {
    if constexpr (Distance == 4) return ordered_by<0xf0>(r, in_order<0x4e>(r));
    if constexpr (Distance == 2) return ordered_by<0xcc>(r, in_order<0xb1>(r));
    return ordered_by<0xaa>(r, words_in_order<_MM_PERM_BADC>(r));
  }
  static void turn(Register* r) {
    Register pairs[kSortBlock];  // of lanes c, c + 2, c + 4 and c + 6 of two registers
    for (int i = 0; i < kSortBlock; i += 2) {
      pairs[i] = low_pairs(r[i], r[i + 1]);
      pairs[i + 1] = high_pairs(r[i], r[i + 1]);
    }
    for (int c = 0; c < 2; ++c) {
      const Register low_near = _mm512_maskz_shuffle_i64x2(kAll, pairs[c], pairs[c + 2], 0x44);
      const Register low_far = _mm512_maskz_shuffle_i64x2(kAll, pairs[c], pairs[c + 2], 0xee);
      const Register high_near = _mm512_maskz_shuffle_i64x2(kAll, pairs[c + 4], pairs[c + 6], 0x44);
      const Register high_far = _mm512_maskz_shuffle_i64x2(kAll, pairs[c + 4], pairs[c + 6], 0xee);
      r[c] = _mm512_maskz_shuffle_i64x2(kAll, low_near, high_near, 0x88);
      r[c + 2] = _mm512_maskz_shuffle_i64x2(kAll, low_near, high_near, 0xdd);
      r[c + 4] = _mm512_maskz_shuffle_i64x2(kAll, low_far, high_far, 0x88);
      r[c + 6] = _mm512_maskz_shuffle_i64x2(kAll, low_far, high_far, 0xdd);
    }
  }
  template <bool WithEqual>
  static int put(Register r, Register wall, int64_t* low, int64_t* high) {
    const __mmask8 is_low =
        _mm512_cmp_epi64_mask(r, wall, WithEqual ? _MM_CMPINT_LE : _MM_CMPINT_LT);
    const int lows = std::popcount(static_cast<unsigned>(is_low));
    store(low, _mm512_maskz_compress_epi64(is_low, r));
    const auto is_high = static_cast<__mmask8>(~is_low);
    _mm512_mask_storeu_epi64(high - (kLanes - lows), first(kLanes - lows),
                             _mm512_maskz_compress_epi64(is_high, r));
    return lows;
  }

 private:
  static __mmask8 first(int64_t count) { return static_cast<__mmask8>((1u << count) - 1); }
  template <__mmask8 OfMax>
  static Register ordered_by(Register r, Register other) {
    return _mm512_mask_max_epi64(min(r, other), OfMax, r, other);
  }
};

constexpr int kSortBytes = 64;  ///< of the registers that are taken for more than a short line
#else
constexpr int kSortBytes = 32;
#endif

}  // namespace cuop::kernels
#endif
