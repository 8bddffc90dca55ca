// Sums of squares in double, of numbers where they lie: those of floats are exact, so that only
// their sum rounds.
#include <algorithm>

#include "cuop/backend/cpu/isa.h"
#include "cuop/backend/cpu/lanes.h"
#include "cuop/ops/reduce/fold.h"

namespace cuop {
namespace {

using V = lanes::Vector<double>;
constexpr int kLanes = lanes::kCount<double>;
constexpr int kAbreast = 4;
constexpr int64_t kGroup = int64_t{kAbreast} * kLanes;
constexpr int64_t kLeaf = 16 * kGroup;  // numbers whose squares are added up before the others'

template <class T>
[[gnu::always_inline]] inline V square(const T* data) {
  const V value = lanes::load_double(data);
  return value * value;
}
template <class T>
[[gnu::always_inline]] inline double square(T value) {
  return static_cast<double>(value) * static_cast<double>(value);
}

/// Adds whole groups, at most a leaf.
template <class T>
[[gnu::always_inline]] inline void add_leaf(V (&total)[kAbreast], const T* data, int64_t n) {
  V part[kAbreast];
#pragma GCC unroll 4
  for (int k = 0; k < kAbreast; ++k) part[k] = square(data + k * kLanes);
  for (int64_t i = kGroup; i < n; i += kGroup) {
#pragma GCC unroll 4
    for (int k = 0; k < kAbreast; ++k) {
      lanes::prefetch(data + i + k * kLanes);
      part[k] = part[k] + square(data + i + k * kLanes);
    }
  }
#pragma GCC unroll 4
  for (int k = 0; k < kAbreast; ++k) total[k] = total[k] + part[k];
}

template <class T>
double fold_row(const T* data, int64_t n) {
  V total[kAbreast] = {};
  const int64_t grouped = n / kGroup * kGroup;
  for (int64_t i = 0; i < grouped; i += kLeaf) {
    add_leaf(total, data + i, std::min(kLeaf, grouped - i));
  }
  double lane[kLanes];
  lanes::store(lane, (total[0] + total[1]) + (total[2] + total[3]));
  for (int64_t i = grouped; i < n; ++i) lane[i % kLanes] += square(data[i]);
  lanes::fold_halves<1>(lane, [](double a, double b) { return a + b; });
  return lane[0];
}

void init(void* states, int64_t count) { std::fill_n(static_cast<double*>(states), count, 0.0); }

template <class T>
void rows(void* states, const void* data, int64_t count, int64_t row_stride, int64_t n) {
  auto* state = static_cast<double*>(states);
  const auto* row = static_cast<const T*>(data);
  for (int64_t i = 0; i < count; ++i) state[i] += fold_row(row + i * row_stride, n);
}

template <int Rows, class T>
void add_rows(double* state, const void* const* rows, int64_t columns) {
  const T* row[Rows];
  for (int r = 0; r < Rows; ++r) row[r] = static_cast<const T*>(rows[r]);
  for (int64_t j = 0; j < columns; ++j) {
    double part[Rows];
    for (int r = 0; r < Rows; ++r) part[r] = square(row[r][j]);
    lanes::fold_halves<1>(part, [](double a, double b) { return a + b; });
    state[j] += part[0];
  }
}
template <class T>
void columns(void* states, const void* const* rows, int64_t row_count, int64_t columns) {
  auto* state = static_cast<double*>(states);
  int64_t r = 0;
  for (; r + 8 <= row_count; r += 8) add_rows<8, T>(state, rows + r, columns);
  for (; r < row_count; ++r) add_rows<1, T>(state, rows + r, columns);
}

void merge(void* into, const void* from, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    static_cast<double*>(into)[i] += static_cast<const double*>(from)[i];
  }
}

template <class T>
constexpr Fold kFold{sizeof(double), true, init, rows<T>, columns<T>, merge};

}  // namespace

template <>
const Fold* square_fold<isa::CUOP_ISA>(DType element) {
  return find_by_dtype(TypeList<float, double>{}, element,
                       []<class T>(TypeTag<T>) -> const Fold* { return &kFold<T>; });
}

}  // namespace cuop
