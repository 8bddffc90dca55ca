// Compensated sums in double, in vector lanes: at the speed of memory, like a plain sum.
#include <algorithm>
#include <type_traits>

#include "cuop/backend/cpu/isa.h"
#include "cuop/backend/cpu/lanes.h"
#include "cuop/jit/kernels/compensated.h"
#include "cuop/ops/reduce/fold.h"

namespace cuop {
namespace {

using V = lanes::Vector<double>;
using State = Compensated<double>;
constexpr int kLanes = lanes::kCount<double>;
constexpr int kAccumulators = 4;

void init(void* states, int64_t count) {
  std::fill_n(static_cast<State*>(states), count, State{0.0, 0.0});
}

/// Adds the lanes to the state, halving them as a tree.
[[gnu::always_inline]] inline void add_lanes(State& state, const Compensated<V>& total) {
  double sum[kLanes], error[kLanes];
  lanes::store(sum, total.sum);
  lanes::store(error, total.error);
  State lane[kLanes];
  for (int k = 0; k < kLanes; ++k) lane[k] = {sum[k], error[k]};
  lanes::fold_halves<1>(lane, [](State a, const State& b) {
    a.merge(b);
    return a;
  });
  state.merge(lane[0]);
}

/// The next numbers of a lane: one double as it is, eight floats added up in double, where their
/// sum loses at most its 50th bit.
template <class T>
constexpr int kTaken = std::is_same_v<T, float> ? 8 : 1;
template <class T>
[[gnu::always_inline]] inline V take(const T* data, int64_t step) {
  V total = lanes::load_double(data);
#pragma GCC unroll 8
  for (int i = 1; i < kTaken<T>; ++i) total = total + lanes::load_double(data + i * step);
  return total;
}

template <class T>
void fold_row(State& state, const T* row, int64_t n) {
  constexpr int64_t kRound = kAccumulators * kLanes * kTaken<T>;
  int64_t i = 0;
  if (n >= kRound) {
    Compensated<V> part[kAccumulators] = {};
    for (; i + kRound <= n; i += kRound) {
#pragma GCC unroll 4
      for (int k = 0; k < kAccumulators; ++k) {
#pragma GCC unroll 8
        for (int j = 0; j < kTaken<T>; ++j) {
          lanes::prefetch(row + i + (k + j * kAccumulators) * kLanes);
        }
        part[k].add(take(row + i + k * kLanes, kAccumulators * kLanes));
      }
    }
#pragma GCC unroll 4
    for (int k = 1; k < kAccumulators; ++k) part[0].merge(part[k]);
    add_lanes(state, part[0]);
  }
  for (; i < n; ++i) state.add(static_cast<double>(row[i]));
}

template <class T>
void rows(void* states, const void* data, int64_t count, int64_t row_stride, int64_t n) {
  for (int64_t i = 0; i < count; ++i) {
    fold_row(static_cast<State*>(states)[i], static_cast<const T*>(data) + i * row_stride, n);
  }
}

/// Tiles of columns whose sums and errors lie side by side in the cache, some rows a round.
template <int Rows, class T>
[[gnu::always_inline]] inline void add_rows(double* sum, double* error, const void* const* rows,
                                            int64_t first, int64_t width) {
  const T* row[Rows];
  for (int r = 0; r < Rows; ++r) row[r] = static_cast<const T*>(rows[r]) + first;
  int64_t j = 0;
  for (; j + kLanes <= width; j += kLanes) {
    Compensated<V> part{lanes::load(sum + j), lanes::load(error + j)};
    if constexpr (kTaken < T >> 1) {
      V total = lanes::load_double(row[0] + j);
      for (int r = 1; r < Rows; ++r) total = total + lanes::load_double(row[r] + j);
      part.add(total);
    } else {
      for (int r = 0; r < Rows; ++r) part.add(lanes::load_double(row[r] + j));
    }
    lanes::store(sum + j, part.sum);
    lanes::store(error + j, part.error);
  }
  for (; j < width; ++j) {
    State part{sum[j], error[j]};
    for (int r = 0; r < Rows; ++r) part.add(static_cast<double>(row[r][j]));
    sum[j] = part.sum;
    error[j] = part.error;
  }
}

template <class T>
void columns(void* states, const void* const* rows, int64_t row_count, int64_t columns) {
  constexpr int64_t kColumns = 512;
  constexpr int kRows = 8;
  for (int64_t first = 0; first < columns; first += kColumns) {
    const int64_t width = std::min(kColumns, columns - first);
    double sum[kColumns] = {}, error[kColumns] = {};
    int64_t r = 0;
    for (; r + kRows <= row_count; r += kRows) {
      add_rows<kRows, T>(sum, error, rows + r, first, width);
    }
    for (; r < row_count; ++r) add_rows<1, T>(sum, error, rows + r, first, width);
    for (int64_t j = 0; j < width; ++j) {
      static_cast<State*>(states)[first + j].merge({sum[j], error[j]});
    }
  }
}

void merge(void* into, const void* from, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    static_cast<State*>(into)[i].merge(static_cast<const State*>(from)[i]);
  }
}

template <class T>
constexpr Fold kFold{sizeof(State), false, init, rows<T>, columns<T>, merge};

}  // namespace

template <>
const Fold* compensated_fold<isa::CUOP_ISA>(DType element) {
  return find_by_dtype(FloatTypes{}, element,
                       []<class T>(TypeTag<T>) -> const Fold* { return &kFold<T>; });
}

}  // namespace cuop
