// Moments of blocks of numbers, each about a center of its own, the mean of the block's first part,
// which is read twice; then the moments of blocks are merged.
#include <algorithm>
#include <type_traits>

#include "cuop/backend/cpu/half_convert.h"
#include "cuop/backend/cpu/isa.h"
#include "cuop/backend/cpu/lanes.h"
#include "cuop/core/divide_up.h"
#include "cuop/jit/kernels/moments.h"
#include "cuop/jit/kernels/narrow.h"
#include "cuop/ops/reduce/fold.h"

namespace cuop {
namespace {

using V = lanes::Vector<double>;
constexpr int kLanes = lanes::kCount<double>;
constexpr int kUnroll = 4;
constexpr int64_t kGroup = kUnroll * kLanes;
constexpr int64_t kBlock = 2048;  ///< numbers about one center

/// How many of n numbers the center is the mean of. What is then taken away for the center's
/// distance from the mean of all is at most n / sample times what is left.
constexpr int64_t sample_of(int64_t n) { return divide_up(n, 32); }

void init(void* states, int64_t count) {
  std::fill_n(static_cast<Moments*>(states), count, Moments{0.0, 0.0, 0.0, 0});
}

double total(const V (&part)[kUnroll]) {
  const V folded = (part[0] + part[1]) + (part[2] + part[3]);
  return lanes::fold<double>(folded, [](double a, double b) { return a + b; });
}

/// The moments of n numbers about a center. Inline, so that those of short rows stay in registers.
template <class T>
[[gnu::always_inline]] inline Moments moments_about(double center, const T* row, int64_t n) {
  Moments all{center, 0.0, 0.0, n};
  const int64_t whole = n - n % kGroup;
  int64_t i = 0;
  if (whole > 0) {
    V sum[kUnroll] = {}, squares[kUnroll] = {};
    for (; i < whole; i += kGroup) {
#pragma GCC unroll 4
      for (int k = 0; k < kUnroll; ++k) {
        const V apart = lanes::load_double(row + i + k * kLanes) - center;
        sum[k] = sum[k] + apart;
        squares[k] = squares[k] + apart * apart;
      }
    }
    all.sum = total(sum);
    all.squares = total(squares);
  }
  double sum = 0.0, squares = 0.0;
  for (; i < n; ++i) {
    const double apart = static_cast<double>(row[i]) - center;
    sum += apart;
    squares += apart * apart;
  }
  all.sum += sum;
  all.squares += squares;
  return all;
}

/// The mean of the numbers, from what they are beyond the first one: what is the same for all of
/// them is not rounded.
template <class T>
double center_of(const T* row, int64_t n) {
  const double first = static_cast<double>(row[0]);
  if (n == 1) return first;
  return first + moments_about(first, row, n).sum / static_cast<double>(n);
}

/// Numbers that vectors of doubles are made of: n of `from`, in `room` where they have 16 bits.
template <class T>
auto readable(const T* from, float* room, int64_t n) {
  if constexpr (jit::is_narrow_type<T>) {
    backend::half_converter<isa::CUOP_ISA>().to_float(from, room, n);
    return static_cast<const float*>(room);
  } else {
    return from;
  }
}

/// Whether so much is taken away for the center's distance from the mean of all that doubles lose
/// digits: more than `most` of the squares. The center was the mean of too few then, as where the
/// first number is far from the others. What was a float has digits to lose.
template <class T>
bool is_far(double sum, double squares, int64_t n, double most) {
  return std::is_same_v<T, double> && sum * sum > most * static_cast<double>(n) * squares;
}

template <class T>
void fold_row(Moments& state, const T* row, int64_t n) {
  float room[jit::is_narrow_type<T> ? kBlock : 1];
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t size = std::min(kBlock, n - i);
    const auto* const block = readable(row + i, room, size);
    Moments block_state = moments_about(center_of(block, sample_of(size)), block, size);
    if (is_far<T>(block_state.sum, block_state.squares, size, 0.75)) {
      const double mean = block_state.center + block_state.sum / static_cast<double>(size);
      block_state = moments_about(mean, block, size);
    }
    state.merge(block_state);
  }
}

template <class T>
void rows(void* states, const void* data, int64_t count, int64_t row_stride, int64_t n) {
  for (int64_t i = 0; i < count; ++i) {
    fold_row(static_cast<Moments*>(states)[i], static_cast<const T*>(data) + i * row_stride, n);
  }
}

constexpr int64_t kColumns = 512;

/// What rows add to each column, several rows at a time: add(place, x...) of the columns at one
/// place, in vectors while they fill them.
template <class T, int Rows, class Add>
[[gnu::always_inline]] inline void add_some_rows(const void* const* rows, int64_t first,
                                                 int64_t width, Add&& add) {
  float room[Rows][jit::is_narrow_type<T> ? kColumns : 1];
  std::conditional_t<jit::is_narrow_type<T>, const float*, const T*> row[Rows];
  for (int r = 0; r < Rows; ++r) {
    row[r] = readable(static_cast<const T*>(rows[r]) + first, room[r], width);
  }
  int64_t j = 0;
  for (; j + kLanes <= width; j += kLanes) {
    V x[Rows];
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r) x[r] = lanes::load_double(row[r] + j);
    add(j, x);
  }
  for (; j < width; ++j) {
    double x[Rows];
    for (int r = 0; r < Rows; ++r) x[r] = static_cast<double>(row[r][j]);
    add(j, x);
  }
}
template <class T, class Add>
[[gnu::always_inline]] inline void add_rows(const void* const* rows, int64_t count, int64_t first,
                                            int64_t width, Add&& add) {
  int64_t r = 0;
  for (; r + 4 <= count; r += 4) add_some_rows<T, 4>(rows + r, first, width, add);
  for (; r < count; ++r) add_some_rows<T, 1>(rows + r, first, width, add);
}

template <class X>
[[gnu::always_inline]] inline X read(const double* from) {
  if constexpr (std::is_same_v<X, V>) {
    return lanes::load(from);
  } else {
    return *from;
  }
}
[[gnu::always_inline]] inline void write(double* to, const V& value) { lanes::store(to, value); }
[[gnu::always_inline]] inline void write(double* to, double value) { *to = value; }
/// to += the sum of the values, pairwise.
template <class X, size_t Count>
[[gnu::always_inline]] inline void add_to(double* to, const X (&values)[Count]) {
  X sum = values[0];
  if constexpr (Count == 4) sum = (values[0] + values[1]) + (values[2] + values[3]);
  write(to, read<X>(to) + sum);
}

/// As for rows, the center of each column being the mean of its first numbers.
template <class T>
void columns(void* states, const void* const* rows, int64_t row_count, int64_t columns) {
  constexpr int64_t kRows = 128;
  for (int64_t first = 0; first < columns; first += kColumns) {
    const int64_t width = std::min(kColumns, columns - first);
    for (int64_t begin = 0; begin < row_count; begin += kRows) {
      const int64_t count = std::min(row_count - begin, kRows);
      const void* const* const block = rows + begin;
      const int64_t sample = sample_of(count);
      double start[kColumns], center[kColumns] = {}, sum[kColumns] = {}, squares[kColumns] = {};
      const T* const row = static_cast<const T*>(block[0]) + first;
      for (int64_t j = 0; j < width; ++j) start[j] = static_cast<double>(row[j]);
      // The first row is at no distance from itself.
      add_rows<T>(block + 1, sample - 1, first, width, [&]<class X, size_t N>(int64_t j, X(&x)[N]) {
        const X from = read<X>(start + j);
#pragma GCC unroll 4
        for (X& value : x) value = value - from;
        add_to(center + j, x);
      });
      for (int64_t j = 0; j < width; ++j) {
        center[j] = start[j] + center[j] / static_cast<double>(sample);
      }
      const auto add_moments = [&] {
        add_rows<T>(block, count, first, width, [&]<class X, size_t N>(int64_t j, X(&x)[N]) {
          const X from = read<X>(center + j);
#pragma GCC unroll 4
          for (X& value : x) value = value - from;
          add_to(sum + j, x);
#pragma GCC unroll 4
          for (X& value : x) value = value * value;
          add_to(squares + j, x);
        });
      };
      add_moments();
      bool is_any_far = false;  // so far that random numbers never are: all columns are read again
      for (int64_t j = 0; j < width; ++j) {
        is_any_far = is_any_far || is_far<T>(sum[j], squares[j], count, 0.9);
      }
      if (is_any_far) {
        for (int64_t j = 0; j < width; ++j) {
          center[j] += sum[j] / static_cast<double>(count);
          sum[j] = squares[j] = 0.0;
        }
        add_moments();
      }
      for (int64_t j = 0; j < width; ++j) {
        static_cast<Moments*>(states)[first + j].merge({center[j], sum[j], squares[j], count});
      }
    }
  }
}

void merge(void* into, const void* from, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    static_cast<Moments*>(into)[i].merge(static_cast<const Moments*>(from)[i]);
  }
}

template <class T>
constexpr Fold kFold{sizeof(Moments), true, init, rows<T>, columns<T>, merge};

}  // namespace

template <>
const Fold* moments_fold<isa::CUOP_ISA>(DType element) {
  return find_by_dtype(FloatingTypes{}, element,
                       []<class T>(TypeTag<T>) -> const Fold* { return &kFold<T>; });
}

}  // namespace cuop
