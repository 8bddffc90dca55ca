#include <algorithm>
#include <type_traits>

#include "cuop/backend/cpu/isa.h"
#include "cuop/ops/lanes_internal.h"
#include "cuop/ops/poisson/row_kernels.h"

namespace cuop::kernels {

namespace {

template <class T>
void relax(const RowCells<T>& cells, T inverse, T omega, int64_t count, T* center) {
  // All cells are computed, in pieces, and every other one is written: vectors are faster than
  // steps of two. A piece's cells beside the next piece are not those that it writes.
  constexpr int64_t kPiece = 512;
  T made[kPiece];
  const T down = cells.down, across = cells.across;
  for (int64_t begin = 0; begin < count; begin += kPiece) {
    const int64_t length = std::min(kPiece, count - begin);
    const T* const north = cells.north + begin;
    const T* const south = cells.south + begin;
    const T* const b = cells.b + begin;
    T* const to = center + begin;
#pragma GCC ivdep
    for (int64_t j = 0; j < length; ++j) {
      const T sum = down * (north[j] + south[j]) + across * (to[j - 1] + to[j + 1]);
      made[j] = to[j] + omega * ((b[j] + sum) * inverse - to[j]);
    }
    for (int64_t j = 0; j < length; j += 2) to[j] = made[j];
  }
}

template <class T>
double residual(const RowCells<T>& cells, const T* center, int64_t count, T* __restrict out) {
  constexpr int64_t kPiece = 512;
  T made[kPiece];
  const T down = cells.down, across = cells.across, diagonal = cells.diagonal;
  double total = 0.0;
  for (int64_t begin = 0; begin < count; begin += kPiece) {
    const int64_t length = std::min(kPiece, count - begin);
    const T* const north = cells.north + begin;
    const T* const south = cells.south + begin;
    const T* const at = center + begin;
    const auto sum = [&](int64_t j) {
      return down * (north[j] + south[j]) + across * (at[j - 1] + at[j + 1]);
    };
    if (cells.b != nullptr) {
      const T* const b = cells.b + begin;
#pragma GCC ivdep
      for (int64_t j = 0; j < length; ++j) made[j] = (b[j] + sum(j)) - diagonal * at[j];
    } else {
#pragma GCC ivdep
      for (int64_t j = 0; j < length; ++j) made[j] = diagonal * at[j] - sum(j);
    }
    total += sum_in_lanes(length, [&](int64_t j) {
      const double value = static_cast<double>(made[j]);
      return value * value;
    });
    if (out != nullptr) std::copy(made, made + length, out + begin);
  }
  return total;
}

template <class T>
double dot(const T* x, const T* y, int64_t count) {
  return sum_in_lanes(
      count, [&](int64_t j) { return static_cast<double>(x[j]) * static_cast<double>(y[j]); });
}

template <class T>
void combine(const T* const* rows, const T* weights, int64_t taps, int64_t count,
             T* __restrict out) {
  const T* const first = rows[0];
#pragma GCC ivdep
  for (int64_t j = 0; j < count; ++j) out[j] = weights[0] * first[j];
  for (int64_t k = 1; k < taps; ++k) {
    const T* const row = rows[k];
    const T weight = weights[k];
#pragma GCC ivdep
    for (int64_t j = 0; j < count; ++j) out[j] += weight * row[j];
  }
}

template <int Taps, bool IsAdded, class T>
void gather_taps(const T* in, const int64_t* first, const T* weights, int64_t count,
                 T* __restrict out) {
#pragma GCC ivdep
  for (int64_t j = 0; j < count; ++j) {
    const T* const from = in + first[j];
    T sum = weights[j * Taps] * from[0];
    for (int k = 1; k < Taps; ++k) sum += weights[j * Taps + k] * from[k];
    out[j] = IsAdded ? out[j] + sum : sum;
  }
}

/// Interpolation has 2 taps and its transpose up to 4.
template <class T>
void gather(const T* in, const int64_t* first, const T* weights, int64_t taps, int64_t count,
            bool is_added, T* out) {
  const auto of = [&]<int Taps>(std::integral_constant<int, Taps>) {
    const auto run = is_added ? gather_taps<Taps, true, T> : gather_taps<Taps, false, T>;
    run(in, first, weights, count, out);
  };
  if (taps == 1) of(std::integral_constant<int, 1>{});
  if (taps == 2) of(std::integral_constant<int, 2>{});
  if (taps == 3) of(std::integral_constant<int, 3>{});
  if (taps == 4) of(std::integral_constant<int, 4>{});
}

}  // namespace

template <class Level, class T>
const FivePointLoops<T>& five_point_loops() {
  static constexpr FivePointLoops<T> kLoops{&relax<T>, &residual<T>, &dot<T>, &combine<T>,
                                            &gather<T>};
  return kLoops;
}
template const FivePointLoops<float>& five_point_loops<isa::CUOP_ISA, float>();
template const FivePointLoops<double>& five_point_loops<isa::CUOP_ISA, double>();

}  // namespace cuop::kernels
