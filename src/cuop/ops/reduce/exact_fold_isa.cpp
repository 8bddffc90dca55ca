// Exact sums in vectors. Numbers below 2^e are cut into slices from the top: a large accumulator,
// 1.5 2^k, takes in x rounded to its own last place, what it took is the slice, the rest goes to
// the next accumulator (after Rump, Ogita, Oishi, "Accurate floating-point summation", 2008, and
// Demmel, Nguyen, "Parallel reproducible summation", 2015). As long as an accumulator stays between
// 2^k and 2^(k+1) nothing is lost; after a block only the accumulators reach the wide sum. A block
// that leaves a rest after the last slice, or holds inf or NaN, goes there element by element.
#include <algorithm>
#include <new>

#include "cuop/backend/cpu/isa.h"
#include "cuop/backend/cpu/lanes.h"
#include "cuop/jit/kernels/exact_sum.h"
#include "cuop/ops/reduce/fold.h"

namespace cuop {
namespace {

using V = lanes::Vector<double>;
using Bits = lanes::Vector<int64_t>;
constexpr int kLanes = lanes::kCount<double>;
constexpr int kStreams = 2;
constexpr int64_t kGroup = kStreams * kLanes;
constexpr int64_t kBlock = 4096;  // 2^12 elements, 2^8 for a lane of a stream
// From k = e + 11 a lane's 2^8 slices below 2^e stay within 2^(k-1), and 2^12 of them, the block's,
// are a multiple of 2^(k-52) below 2^(k+1): exact in a double too.
constexpr int kHeadroom = 11;
constexpr int kSliceBits = 52 - kHeadroom;
constexpr int kLargestExponent = 1000;             // beyond, the accumulators could overflow
constexpr int kCounts[] = {1, 2, 3, 4, 6, 8, 12};  // of slices, tried in this order

/// Smallest e with |x| < 2^e for the number with these bits (without sign); 1025 for inf and NaN.
int exponent_of(int64_t magnitude_bits) { return static_cast<int>(magnitude_bits >> 52) - 1022; }

/// Start of accumulator s: its last place is 2^(k-52), at least the smallest number there is.
double start_of(int slice, int exponent) {
  const int unit = exponent - kSliceBits - slice * (kSliceBits + 1);
  return __builtin_ldexp(1.5, 52 + std::max(unit, ExactSum::kMinExponent));
}

/// Accumulators of one stream.
template <int Slices>
struct Slicer {
  V part[Slices];
  Bits rest = {};  ///< nonzero where something is left
  Bits largest = {};

  Slicer() = default;
  [[gnu::always_inline]] explicit Slicer(int exponent) {
    // Unrolled, or the accumulators would stay in memory.
#pragma GCC unroll 12
    for (int s = 0; s < Slices; ++s) part[s] = lanes::broadcast(start_of(s, exponent));
  }
  [[gnu::always_inline]] void add(V x) {
    largest = lanes::larger(lanes::magnitude_bits(x), largest);
#pragma GCC unroll 12
    for (int s = 0; s < Slices; ++s) {
      const V next = part[s] + x;
      x = x - (next - part[s]);
      part[s] = next;
    }
    rest = rest | lanes::magnitude_bits(x);
  }
};

enum class Outcome { kDone, kTooFewSlices, kTooLarge };

/// Judges what slicers have seen; `exponent` becomes that of the largest element.
[[gnu::always_inline]] inline Outcome judge(const Bits& rest, const Bits& largest, int& exponent) {
  const auto either = [](int64_t a, int64_t b) { return a | b; };
  const auto greater = [](int64_t a, int64_t b) { return a > b ? a : b; };
  const int seen = exponent_of(lanes::fold<int64_t>(largest, greater));
  const bool is_too_large = seen > exponent;
  exponent = seen;
  if (is_too_large) return Outcome::kTooLarge;
  return lanes::fold<int64_t>(rest, either) == 0 ? Outcome::kDone : Outcome::kTooFewSlices;
}

/// Adds a block to `total`; nothing is added unless kDone.
template <int Slices, class T>
Outcome add_slices(ExactSum& total, const T* data, int64_t n, int& exponent) {
  const int assumed = exponent;
  Slicer<Slices> even(assumed), odd(assumed);
  for (int64_t i = 0; i < n; i += kGroup) {
    lanes::prefetch(data + i);
    lanes::prefetch(data + i + kLanes);
    even.add(lanes::load_double(data + i));
    odd.add(lanes::load_double(data + i + kLanes));
  }
  const Outcome outcome =
      judge(even.rest | odd.rest, lanes::larger(even.largest, odd.largest), exponent);
  if (outcome != Outcome::kDone) return outcome;
#pragma GCC unroll 12
  for (int s = 0; s < Slices; ++s) {
    const double start = start_of(s, assumed);
    const V slice = (even.part[s] - start) + (odd.part[s] - start);
    total.add(lanes::fold<double>(slice, [](double a, double b) { return a + b; }));
  }
  return outcome;
}

/// The same for some vectors' width of columns, a lane for each.
template <int Slices, int Vectors, class T>
Outcome add_column_slices(ExactSum* totals, const void* const* rows, int64_t n, int64_t first,
                          int& exponent) {
  constexpr int64_t kAhead = 8;
  constexpr int kTogether = Slices <= 4 ? Vectors : 1;  // whose accumulators registers hold
  const int assumed = exponent;
  Slicer<Slices> stream[Vectors];
  for (int begin = 0; begin < Vectors; begin += kTogether) {
    Slicer<Slices> together[kTogether];
#pragma GCC unroll 4
    for (int v = 0; v < kTogether; ++v) together[v] = Slicer<Slices>(assumed);
    const int64_t from = first + begin * kLanes;
    for (int64_t r = 0; r < n; ++r) {
      const T* row = static_cast<const T*>(rows[r]) + from;
      const T* later = static_cast<const T*>(rows[std::min(r + kAhead, n - 1)]) + from;
#pragma GCC unroll 4
      for (int v = 0; v < kTogether; ++v) {
        __builtin_prefetch(later + v * kLanes);
        together[v].add(lanes::load_double(row + v * kLanes));
      }
    }
#pragma GCC unroll 4
    for (int v = 0; v < kTogether; ++v) stream[begin + v] = together[v];
  }
  Bits rest = stream[0].rest, largest = stream[0].largest;
#pragma GCC unroll 4
  for (int v = 1; v < Vectors; ++v) {
    rest = rest | stream[v].rest;
    largest = lanes::larger(stream[v].largest, largest);
  }
  const Outcome outcome = judge(rest, largest, exponent);
  if (outcome != Outcome::kDone) return outcome;
  for (int s = 0; s < Slices; ++s) {
    for (int v = 0; v < Vectors; ++v) {
      double slice[kLanes];
      lanes::store(slice, stream[v].part[s] - start_of(s, assumed));
      for (int k = 0; k < kLanes; ++k) totals[v * kLanes + k].add(slice[k]);
    }
  }
  return outcome;
}

/// What the blocks before needed: neighbours are most often of one kind.
struct Experience {
  int exponent = -1022;
  int choice = 0;          ///< of kCounts
  int blocks_to_skip = 0;  ///< blocks for which slices are not tried
};

/// Calls attempt<Slices>(exponent) with growing numbers of slices; false when none suffices.
template <class Attempt>
bool try_slices(Experience& experience, Attempt&& attempt) {
  if (experience.blocks_to_skip > 0) {
    --experience.blocks_to_skip;
    return false;
  }
  constexpr int kChoices = static_cast<int>(std::size(kCounts));
  while (experience.choice < kChoices) {
    const int assumed = experience.exponent;
    int exponent = assumed;
    const Outcome outcome = [&] {
      switch (kCounts[experience.choice]) {
        case 1:
          return attempt.template operator()<1>(exponent);
        case 2:
          return attempt.template operator()<2>(exponent);
        case 3:
          return attempt.template operator()<3>(exponent);
        case 4:
          return attempt.template operator()<4>(exponent);
        case 6:
          return attempt.template operator()<6>(exponent);
        case 8:
          return attempt.template operator()<8>(exponent);
        default:
          return attempt.template operator()<12>(exponent);
      }
    }();
    // A bit of room for the next block; bits given away at the top are missing at the bottom.
    constexpr int kRoom = 1, kWaste = 6;
    const bool is_far_off = exponent > assumed || exponent < assumed - kWaste;
    if (is_far_off) experience.exponent = std::max(exponent, -1022) + kRoom;
    if (outcome == Outcome::kDone) return true;
    if (experience.exponent > kLargestExponent) break;
    if (outcome == Outcome::kTooFewSlices && !is_far_off) ++experience.choice;
  }
  experience = Experience{};
  experience.blocks_to_skip = 16;
  return false;
}

template <class T>
void add_each(ExactSum& total, const T* data, int64_t n) {
  for (int64_t i = 0; i < n; ++i) total.add(static_cast<double>(data[i]));
}

template <class T>
void fold_row(ExactSum& total, const T* row, int64_t n, Experience& experience) {
  int64_t i = 0;
  while (n - i >= 2 * kGroup) {
    const int64_t size = std::min(kBlock, (n - i) / kGroup * kGroup);
    const bool is_done = try_slices(experience, [&]<int Slices>(int& exponent) {
      return add_slices<Slices>(total, row + i, size, exponent);
    });
    if (!is_done) add_each(total, row + i, size);
    i += size;
  }
  add_each(total, row + i, n - i);
}

void init(void* states, int64_t count) {
  for (int64_t i = 0; i < count; ++i) new (static_cast<ExactSum*>(states) + i) ExactSum();
}

template <class T>
void rows(void* states, const void* data, int64_t count, int64_t row_stride, int64_t n) {
  Experience experience;
  for (int64_t i = 0; i < count; ++i) {
    fold_row(static_cast<ExactSum*>(states)[i], static_cast<const T*>(data) + i * row_stride, n,
             experience);
  }
}

/// Rows [begin, end) of `Vectors` vectors of columns.
template <int Vectors, class T>
void fold_columns(ExactSum* totals, const void* const* rows, int64_t begin, int64_t end,
                  int64_t first, Experience& experience) {
  const bool is_done = try_slices(experience, [&]<int Slices>(int& exponent) {
    return add_column_slices<Slices, Vectors, T>(totals + first, rows + begin, end - begin, first,
                                                 exponent);
  });
  for (int64_t r = begin; !is_done && r < end; ++r) {
    const T* row = static_cast<const T*>(rows[r]) + first;
    for (int64_t k = 0; k < Vectors * kLanes; ++k) {
      totals[first + k].add(static_cast<double>(row[k]));
    }
  }
}

template <class T>
void columns(void* states, const void* const* rows, int64_t row_count, int64_t columns) {
  constexpr int64_t kRows = 256;  // 2^8 elements for a lane
  auto* totals = static_cast<ExactSum*>(states);
  Experience experience;
  for (int64_t begin = 0; begin < row_count; begin += kRows) {
    const int64_t end = std::min(begin + kRows, row_count);
    int64_t j = 0;
    for (; j + 4 * kLanes <= columns; j += 4 * kLanes) {
      fold_columns<4, T>(totals, rows, begin, end, j, experience);
    }
    for (; j + kLanes <= columns; j += kLanes) {
      fold_columns<1, T>(totals, rows, begin, end, j, experience);
    }
    for (; j < columns; ++j) {
      for (int64_t r = begin; r < end; ++r) {
        totals[j].add(static_cast<double>(static_cast<const T*>(rows[r])[j]));
      }
    }
  }
}

void merge(void* into, const void* from, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    static_cast<ExactSum*>(into)[i].merge(static_cast<const ExactSum*>(from)[i]);
  }
}

/// Holds the sum of 2^63 integers of 64 bits.
__extension__ typedef __int128 WideInteger;

void add_wide(ExactSum& total, WideInteger value) {
  total.add_integer(static_cast<int64_t>(value >> 64), static_cast<uint64_t>(value));
}

template <class T>
void integer_rows(void* states, const void* data, int64_t count, int64_t row_stride, int64_t n) {
  for (int64_t i = 0; i < count; ++i) {
    const T* row = static_cast<const T*>(data) + i * row_stride;
    WideInteger sum = 0;
    for (int64_t j = 0; j < n; ++j) sum += row[j];
    add_wide(static_cast<ExactSum*>(states)[i], sum);
  }
}
template <class T>
void integer_columns(void* states, const void* const* rows, int64_t row_count, int64_t columns) {
  constexpr int64_t kTile = 256;
  for (int64_t first = 0; first < columns; first += kTile) {
    const int64_t width = std::min(kTile, columns - first);
    WideInteger sums[kTile] = {};
    for (int64_t r = 0; r < row_count; ++r) {
      const T* row = static_cast<const T*>(rows[r]) + first;
      for (int64_t j = 0; j < width; ++j) sums[j] += row[j];
    }
    for (int64_t j = 0; j < width; ++j)
      add_wide(static_cast<ExactSum*>(states)[first + j], sums[j]);
  }
}

template <class T>
constexpr Fold kFold{sizeof(ExactSum), false, init, rows<T>, columns<T>, merge};
template <class T>
constexpr Fold kIntegerFold{sizeof(ExactSum),   false, init, integer_rows<T>,
                            integer_columns<T>, merge};

}  // namespace

template <>
const Fold* exact_fold<isa::CUOP_ISA>(DType element) {
  using Types = TypeList<float, double, int64_t, uint64_t>;
  return find_by_dtype(Types{}, element, []<class T>(TypeTag<T>) -> const Fold* {
    if constexpr (std::is_integral_v<T>) {
      return &kIntegerFold<T>;
    } else {
      return &kFold<T>;
    }
  });
}

}  // namespace cuop
