// Exact sums. Integers and superaccumulators add up the same in any order, so nothing here is
// ordered: a thread keeps what it has seen in a few doubles without any error, what they cannot
// hold goes to the superaccumulator of its row in shared memory (after Collange, Defour, Graillat
// and Iakymchuk, "Numerical reproducibility for the parallel reduction on multi- and many-core
// architectures", 2015); where several blocks share rows, the last of them adds up what they left.
// Of floats of at most 32 bits those that are near each other in size add up in one integer first,
// in a fifth of the instructions.
#pragma once

#include "cuop/core/divide_up.h"
#include "cuop/jit/kernels/compensated.h"
#include "cuop/jit/kernels/elementwise.cuh"
#include "cuop/jit/kernels/exact_sum.h"
#include "cuop/ops/reduce/exact_words.cuh"
#include "cuop/ops/reduce/wide_sum.cuh"

namespace cuop::jit {

CUOP_FN void change_shared(int64_t* sum, const ExactSum::Change& change) {
#pragma unroll
  for (int i = 0; i < 3; ++i) {
    if (change.digits[i] == 0) continue;
    atomicAdd(reinterpret_cast<unsigned long long*>(sum + change.first + i),
              static_cast<unsigned long long>(change.digits[i]));
  }
}

/// The sum of what a thread has seen, as doubles that do not overlap much: an addition ends where
/// nothing is left of the number.
class Expansion {
 public:
  CUOP_FN void add(double x, int64_t* sum) {
    if (!(math::abs(x) < kLarge)) return add_special(x, sum);
#pragma unroll
    for (int k = 0; k < kTerms; ++k) {
      double left;
      two_sum(double(terms_[k]), x, terms_[k], left);
      x = left;
      if (x == 0.0) return;
    }
    change_shared(sum, ExactSum::change_by(x));
  }
  CUOP_FN void flush(int64_t* sum) {
#pragma unroll
    for (int k = 0; k < kTerms; ++k) {
      if (terms_[k] != 0.0) change_shared(sum, ExactSum::change_by(terms_[k]));
    }
  }

 private:
  static constexpr int kTerms = 4;
  /// 2^63 smaller ones do not overflow a term.
  static constexpr double kLarge = 0x1p960;

  CUOP_FN static void add_special(double x, int64_t* sum) {
    const int64_t kind = ExactSum::special_of(x);
    if (kind == 0) return change_shared(sum, ExactSum::change_by(x));
    atomicOr(reinterpret_cast<unsigned long long*>(sum + ExactSum::kDigits),
             static_cast<unsigned long long>(kind));
  }

  double terms_[kTerms] = {};
};

/// The same of floats: multiples of one power of two below 2^52 of it add up in an integer, 2048 of
/// them without overflow. The power is 2^22 below the first number, or below one that was too large
/// since; those of other sizes go to an expansion.
class FixedPoint {
 public:
  CUOP_FN void add(float x, int64_t* sum) {
    if (!takes(x)) add_apart(x, sum);
    count(1, sum);
  }
  /// Adds x, or does nothing and returns false. `count` is called for every few of them.
  CUOP_FN bool takes(float x) {
    const float units = x * scale_;
    const float size = math::abs(units);
    if (!(size >= 0x1p23f && size < 0x1p52f)) return x == 0.0f;
    total_ += static_cast<int64_t>(units);
    return true;
  }
  /// What has not been taken; it may be now. Whether it is far from the others.
  CUOP_FN bool add_apart(float x, int64_t* sum) {
    if (takes(x)) return false;
    const uint32_t exponent = exponent_of(x);
    const bool is_plain = exponent >= kLeast && exponent < 255;  // no infinity or NaN
    const bool is_larger = lowest_ == kNone || exponent > lowest_;
    if (!is_plain || !is_larger) {
      rest_.add(static_cast<double>(x), sum);
      return true;
    }
    spill(sum);
    take_near(exponent);
    takes(x);
    return false;
  }
  /// Before the first number: those to come are of about this size.
  CUOP_FN void begin_near(float size) {
    const uint32_t exponent = exponent_of(size);
    if (exponent >= kLeast && exponent < 255) take_near(exponent);
  }
  /// So many numbers, at most kMostAtATime, have been added since the last call.
  CUOP_FN void count(int numbers, int64_t* sum) {
    counted_ += numbers;
    if (counted_ > kMost - kMostAtATime) spill(sum);
  }
  CUOP_FN void flush(int64_t* sum) {
    spill(sum);
    rest_.flush(sum);
  }
  /// The same of all threads of a warp, whose sum is one: added up before, as additions to one word
  /// of shared memory take turns.
  CUOP_FN void flush_together(int64_t* sum) {
    constexpr unsigned kAll = 0xffffffffu;
    uint32_t least = total_ == 0 ? kNone : lowest_;
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2) {
      const uint32_t other = __shfl_xor_sync(kAll, least, apart);
      if (other < least) least = other;
    }
    // Halves of 32 bits in units of the least power; 32 of them fit.
    int64_t low = 0, high = 0;
    const uint32_t shift = lowest_ - least;
    if (total_ != 0 && shift <= 24) {
      low = (total_ & 0xffffffff) << shift;
      high = (total_ >> 32) * (int64_t{1} << shift);
      total_ = 0;
    }
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2) {
      low += __shfl_xor_sync(kAll, low, apart);
      high += __shfl_xor_sync(kAll, high, apart);
    }
    if (threadIdx.x % 32 == 0 && least != kNone) {
      const int place = static_cast<int>(least) + kPlace;
      change_shared(sum, ExactSum::change_by(static_cast<uint64_t>(low), place, false));
      const auto size = static_cast<uint64_t>(high < 0 ? -high : high);
      change_shared(sum, ExactSum::change_by(size, place + 32, high < 0));
    }
    flush(sum);
  }

 private:
  static constexpr uint32_t kBelow = 22;
  static constexpr uint32_t kLeast = 24;  ///< of a power whose inverse is a float too
  static constexpr int kMost = 2048, kMostAtATime = 32;
  static constexpr uint32_t kNone = 256;  ///< no number is near it
  /// Numbers of exponent e are significand * 2^(e - 150).
  static constexpr int kPlace = -150 - ExactSum::kMinExponent;

  CUOP_FN static uint32_t exponent_of(float x) {
    return (__builtin_bit_cast(uint32_t, x) >> 23) & 0xffu;
  }
  CUOP_FN void take_near(uint32_t exponent) {
    lowest_ = exponent < kLeast + kBelow ? kLeast : exponent - kBelow;
    scale_ = __builtin_bit_cast(float, (127 + 150 - lowest_) << 23);
  }
  CUOP_FN void spill(int64_t* sum) {
    counted_ = 0;
    if (total_ == 0) return;
    const uint64_t size = static_cast<uint64_t>(total_ < 0 ? -total_ : total_);
    change_shared(sum, ExactSum::change_by(size, static_cast<int>(lowest_) + kPlace, total_ < 0));
    total_ = 0;
  }

  int64_t total_ = 0;        ///< in units of 2^(lowest_ - 150)
  uint32_t lowest_ = kNone;  ///< exponents from it to 28 above it are taken
  float scale_ = 0;          ///< numbers times it are units: 2^(150 - lowest_)
  int counted_ = 0;
  Expansion rest_;
};

/// The same of integers: their lower and upper halves, of which 2^31 fit.
class IntegerExpansion {
 public:
  CUOP_FN void add(int64_t x, int64_t*) { add_halves(x, x >> 32); }
  CUOP_FN void add(uint64_t x, int64_t*) {
    add_halves(static_cast<int64_t>(x), static_cast<int64_t>(x >> 32));
  }
  CUOP_FN void flush(int64_t* sum) {
    change_shared(sum, ExactSum::change_by(static_cast<uint64_t>(low_), kPlace, false));
    const bool is_negative = high_ < 0;
    const auto size = static_cast<uint64_t>(is_negative ? -high_ : high_);
    change_shared(sum, ExactSum::change_by(size, kPlace + 32, is_negative));
  }

 private:
  static constexpr int kPlace = -ExactSum::kMinExponent;

  CUOP_FN void add_halves(int64_t low, int64_t high) {
    low_ += low & 0xffffffff;
    high_ += high;
  }

  int64_t low_ = 0, high_ = 0;
};

/// Whether elements are summed in fixed point: floats of at most 32 bits.
template <class Source, bool IsInteger>
inline constexpr bool is_fixed = !IsInteger && format_of<Source>.precision <= 24;

template <bool IsInteger, bool IsFixed>
struct SeenOf {
  using type = Expansion;
};
template <>
struct SeenOf<false, true> {
  using type = FixedPoint;
};
template <>
struct SeenOf<true, false> {
  using type = IntegerExpansion;
};
template <class Source, bool IsInteger>
using Seen = typename SeenOf<IsInteger, is_fixed<Source, IsInteger>>::type;

/// An element as `Seen` takes it.
template <bool IsInteger, class Source>
CUOP_FN auto term(Source x) {
  if constexpr (is_fixed<Source, IsInteger>) {
    return static_cast<float>(x);
  } else if constexpr (!IsInteger) {
    return as_double(x);
  } else if constexpr (is_signed_type<Source>) {
    return static_cast<int64_t>(x);
  } else {
    return static_cast<uint64_t>(x);
  }
}

/// By a warp, which the words belong to.
template <class Result>
CUOP_FN void finish_exact(const WideSum& a, int64_t state, int64_t* words) {
  if constexpr (gives_states<Result>) {
    store_words(words, static_cast<ExactSum*>(a.result)[place_of_result(a, state)]);
  } else {
    const double sum = rounded_words(words, a.divisor == 0 ? 1 : a.divisor, format_of<Result>);
    if (threadIdx.x % 32 == 0) store_sum<Result>(a, state, sum);
  }
}

/// words <- the sums that `count` blocks have left, `apart` words from each other, by the threads
/// of a block. `Words` of each block, for so many states.
template <int Words>
CUOP_FN void add_up(int64_t* words, const int64_t* left, int count, int64_t apart) {
  constexpr int kShares = Words < kSumThreads ? kSumThreads / Words : 1;
  const int thread = static_cast<int>(threadIdx.x);
  for (int i = thread; i < Words; i += kSumThreads) words[i] = 0;
  __syncthreads();
  for (int item = thread; item < kShares * Words; item += kSumThreads) {
    const int i = item % Words;
    const bool is_special = i % kExactWords == ExactSum::kDigits;
    int64_t total = 0;
#pragma unroll 8
    for (int k = item / Words; k < count; k += kShares) {
      const int64_t word = load_fresh(left + k * apart + i);
      total = is_special ? total | word : total + word;
    }
    auto* const place = reinterpret_cast<unsigned long long*>(words + i);
    if (is_special) {
      atomicOr(place, static_cast<unsigned long long>(total));
    } else {
      atomicAdd(place, static_cast<unsigned long long>(total));
    }
  }
  __syncthreads();
}

/// words <- what the blocks of all parts have left, where this block is the last of them: the last
/// of each group of parts adds up the group's, then of groups. Whether it is.
template <int Words>
CUOP_FN bool add_parts(int64_t* words, int64_t* left, int64_t part, int64_t parts,
                       unsigned* arrivals) {
  int64_t apart = Words;
#pragma unroll 1
  while (true) {
    const int64_t group = part / kExactPartsTogether, first = group * kExactPartsTogether;
    const int64_t rest = parts - first;
    const int count = rest < kExactPartsTogether ? static_cast<int>(rest) : kExactPartsTogether;
    if (!is_last_of(count, arrivals + group)) return false;
    add_up<Words>(words, left + first * apart, count, apart);
    if (parts <= kExactPartsTogether) return true;
    for (int i = static_cast<int>(threadIdx.x); i < Words; i += kSumThreads) {
      left[first * apart + i] = words[i];
    }
    part = group;
    parts = divide_up(parts, int64_t(kExactPartsTogether));
    arrivals += parts;
    apart *= kExactPartsTogether;
  }
}

/// What a thread of `Team`, which begin at one element after the other, sees of elements that lie
/// side by side and begin with whole packs of 16 bytes, pack by pack. Where it goes on: at `i`, its
/// first element, where they do not, else behind the packs.
template <int Team, class Source>
CUOP_FN int64_t see_packs(const Elements<Source, true>& from, int64_t begin, int64_t end, int64_t i,
                          FixedPoint& seen, int64_t* sum) {
  constexpr int kPack = 16 / static_cast<int>(sizeof(Source));
  constexpr int kPacks = 4;  // in flight
  const Source* const first = from.first + begin;
  const bool is_packed =
      from.places->innermost_stride(0) == 1 && reinterpret_cast<uint64_t>(first) % 16 == 0;
  if (!is_packed) return i;
  const int64_t count = (end - begin) / kPack;
  int64_t p = i - begin;
  if (count - p > (kPacks - 1) * Team) {
    float largest = 0.0f;
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      Source x[kPack];
      load_pack(x, first + (p + k * Team) * kPack);
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        const float size = math::abs(static_cast<float>(x[j]));
        if (size > largest) largest = size;
      }
    }
    seen.begin_near(largest);
  }
  bool is_near = true;  // most numbers are taken
#pragma unroll 1
  for (; is_near && count - p > (kPacks - 1) * Team; p += kPacks * Team) {
    Source x[kPacks][kPack];
#pragma unroll
    for (int k = 0; k < kPacks; ++k) load_pack(x[k], first + (p + k * Team) * kPack);
    uint32_t left = 0;
#pragma unroll
    for (int k = 0; k < kPacks * kPack; ++k) {
      if (!seen.takes(static_cast<float>(x[k / kPack][k % kPack]))) left |= 1u << k;
    }
    int far = 0;
    // Read again, as registers have no numbers.
#pragma unroll 1
    for (int k = 0; left != 0; ++k, left >>= 1) {
      if ((left & 1u) == 0) continue;
      const Source again = first[(p + k / kPack * Team) * kPack + k % kPack];
      if (seen.add_apart(static_cast<float>(again), sum)) ++far;
    }
    seen.count(kPacks * kPack, sum);
    is_near = far < kPacks * kPack / 4;
  }
#pragma unroll 1
  for (; p < count; p += kPacks * Team) {
    Source x[kPacks][kPack];
    int numbers = 0;
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      if (p + k * Team >= count) continue;
      load_pack(x[k], first + (p + k * Team) * kPack);
      numbers += kPack;
    }
#pragma unroll 1
    for (int k = 0; k < numbers; ++k) seen.add(static_cast<float>(x[k / kPack][k % kPack]), sum);
  }
  return i + count * kPack;
}

/// `Team` threads share a state: neighbours or, where IsColumn, threads that are far apart, so that
/// neighbours read neighbouring states. A block takes one part of its states.
template <class Source, bool IsInteger, bool IsLinear, int Team, bool IsColumn, class Result>
CUOP_FN void exact_sums(const WideSum& a) {
  constexpr int kStates = kSumThreads / Team;
  constexpr bool kIsFixed = is_fixed<Source, IsInteger>;
  constexpr int kAtATime = IsLinear ? 4 : 1;
  __shared__ int64_t words[kStates][kExactWords];
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = IsColumn ? thread / kStates : thread % Team;
  const int slot = IsColumn ? thread % kStates : thread / Team;
  int64_t* const flat = &words[0][0];
#pragma unroll 1
  for (int64_t unit = blockIdx.x; unit < a.units; unit += gridDim.x) {
    const int64_t group = unit / a.parts, part = unit % a.parts;
    const int64_t state = group * kStates + slot;
    for (int i = thread; i < kStates * kExactWords; i += kSumThreads) flat[i] = 0;
    __syncthreads();
    if (state < a.states) {
      const Elements<Source, IsLinear> from{
          static_cast<const Source*>(a.x) + offsets_at(a.kept, state).of[0], &a.reduced};
      const int64_t begin = part * a.chunk;
      const int64_t end = a.length - begin < a.chunk ? a.length : begin + a.chunk;
      Seen<Source, IsInteger> seen;
      int64_t i = begin + lane;
      if constexpr (kIsFixed && IsLinear)
        i = see_packs<Team>(from, begin, end, i, seen, words[slot]);
#pragma unroll 1
      for (; end - i > (kAtATime - 1) * Team; i += kAtATime * Team) {
        Source x[kAtATime];
#pragma unroll
        for (int k = 0; k < kAtATime; ++k) x[k] = from[i + k * Team];
#pragma unroll 1
        for (int k = 0; k < kAtATime; ++k) seen.add(term<IsInteger>(x[k]), words[slot]);
      }
#pragma unroll 1
      for (; i < end; i += Team) seen.add(term<IsInteger>(from[i]), words[slot]);
      if constexpr (kIsFixed && Team % 32 == 0 && !IsColumn) {
        seen.flush_together(words[slot]);
      } else {
        seen.flush(words[slot]);
      }
    }
    __syncthreads();
    if (a.parts > 1) {
      constexpr int kWords = kStates * kExactWords;
      int64_t* const left = static_cast<int64_t*>(a.partials) + group * a.parts * kWords;
      for (int i = thread; i < kWords; i += kSumThreads) {
        left[part * kWords + i] = carried(flat, i);
      }
      unsigned* const arrivals = a.arrivals + group * groups_of_parts(a.parts, kExactPartsTogether);
      if (!add_parts<kWords>(flat, left, part, a.parts, arrivals)) continue;
    }
    for (int i = thread / 32; i < kStates; i += kSumThreads / 32) {
      if (group * kStates + i < a.states) finish_exact<Result>(a, group * kStates + i, words[i]);
    }
    __syncthreads();  // the words have been read
  }
}

}  // namespace cuop::jit
