// Softmax on a GPU: rows by teams of threads, other axes by columns. Sums and maxima of long rows
// are found in one pass (Milakov and Gimelshein, arXiv 1805.02867).
#pragma once

#include "cuop/jit/kernels/rows.cuh"
#include "cuop/ops/softmax/softmax_arguments.cuh"

namespace cuop::jit {

/// exp of a difference from the maximum. CUDA's of float32 is off by up to 2 ulp, of which a
/// softmax takes no notice, and needs fewer registers than the function of its own.
CUOP_FN float exp_of_difference(float x) { return ::expf(x); }
CUOP_FN double exp_of_difference(double x) { return math::exp(x); }

/// A running maximum and the sum of exp(x - maximum). A NaN passes over the maximum and makes the
/// sum NaN.
template <class T>
struct SoftmaxState {
  T top, sum;

  CUOP_FN static SoftmaxState start() { return {T(-math::infinity), T(0)}; }
  /// What is subtracted: no infinite number from itself while there were only infinite ones.
  CUOP_FN static T shift_of(T top) { return top == T(-math::infinity) ? T(0) : top; }
  CUOP_FN void raise(T other) {
    if (other > top) {
      sum *= exp_of_difference(top - shift_of(other));
      top = other;
    }
  }
  CUOP_FN void add(T x) {
    raise(x);
    sum += exp_of_difference(x - shift_of(top));
  }
  /// A thread's share of the sum once the maximum of all is known.
  CUOP_FN T share(T largest) const {
    return sum *
           exp_of_difference(shift_of(top) == top ? top - shift_of(largest) : T(-math::infinity));
  }
};

/// What every element becomes, given the row's maximum and sum. Where the maximum is infinite that
/// is NaN, as no element differs from it by a number.
template <bool IsLog, class T>
class SoftmaxResult {
 public:
  CUOP_FN SoftmaxResult(T top, T sum) : top_(top), of_sum_(IsLog ? math::log(sum) : T(1) / sum) {}
  CUOP_FN T of(T x) const {
    return IsLog ? (x - top_) - of_sum_ : exp_of_difference(x - top_) * of_sum_;
  }
  /// Of an element whose exponential is at hand.
  CUOP_FN T of_power(T power) const { return power * of_sum_; }

 private:
  T top_, of_sum_;
};

template <class Stored, int Width, int Team, int Keep, bool IsLog>
CUOP_FN void softmax_rows(const SoftmaxArguments& a) {
  using T = Computed<Stored>;
  Agreement<Team, T> agreed;
  for_team_rows<Team>(a.outer, [&](int64_t index, bool is_row) {
    TeamRow<Stored, Width, Team, Keep> row(static_cast<const Stored*>(a.x) + index * a.length,
                                           a.length, is_row);
    Stored* const to = static_cast<Stored*>(a.y) + index * a.length;
    if constexpr (Keep > 0) {
      T top = T(-math::infinity), sum = T(0);
      row.each_pack([&](T(&values)[Width], int64_t) {
#pragma unroll
        for (int j = 0; j < Width; ++j) top = values[j] > top ? values[j] : top;
      });
      top = agreed(top, Larger{});
      row.each_pack([&](T(&values)[Width], int64_t) {
#pragma unroll
        for (int j = 0; j < Width; ++j) {
          const T power = exp_of_difference(values[j] - top);
          sum += power;
          if constexpr (!IsLog) values[j] = power;
        }
      });
      const SoftmaxResult<IsLog, T> result(top, agreed(sum, Total{}));
      row.each_pack([&](T(&values)[Width], int64_t at) {
#pragma unroll
        for (int j = 0; j < Width; ++j) {
          values[j] = IsLog ? result.of(values[j]) : result.of_power(values[j]);
        }
        store_computed<Stored>(to + at, values);
      });
    } else {
      SoftmaxState<T> state = SoftmaxState<T>::start();
      row.each_pack([&](T(&values)[Width], int64_t) {
        T top = values[0];
#pragma unroll
        for (int j = 1; j < Width; ++j) top = values[j] > top ? values[j] : top;
        state.raise(top);
#pragma unroll
        for (int j = 0; j < Width; ++j) state.add(values[j]);
      });
      const T top = agreed(state.top, Larger{});
      const SoftmaxResult<IsLog, T> result(top, agreed(state.share(top), Total{}));
      row.each_pack([&](T(&values)[Width], int64_t at) {
#pragma unroll
        for (int j = 0; j < Width; ++j) values[j] = result.of(values[j]);
        store_computed<Stored>(to + at, values);
      });
    }
  });
}

/// Neighbouring threads take neighbouring columns; `Lanes` threads share a column.
template <class Stored, int Lanes, bool IsLog>
CUOP_FN void softmax_columns(const SoftmaxArguments& a) {
  using T = Computed<Stored>;
  constexpr int kColumns = kSoftmaxThreads / Lanes;
  __shared__ SoftmaxState<T> states[Lanes][kColumns];
  const int slot = static_cast<int>(threadIdx.x) % kColumns;
  const int lane = static_cast<int>(threadIdx.x) / kColumns;
  const int64_t columns = a.outer * a.inner;
#pragma unroll 1
  for (int64_t first = int64_t(blockIdx.x) * kColumns; first < columns;
       first += int64_t(gridDim.x) * kColumns) {
    const int64_t column = first + slot;
    const bool is_column = column < columns;
    const int64_t outer = column / a.inner;
    const int64_t start = outer * a.length * a.inner + (column - outer * a.inner);
    const Stored* const from = static_cast<const Stored*>(a.x) + start;
    Stored* const to = static_cast<Stored*>(a.y) + start;
    SoftmaxState<T> state = SoftmaxState<T>::start();
    if (is_column) {
#pragma unroll 4
      for (int64_t r = lane; r < a.length; r += Lanes) {
        state.add(static_cast<T>(from[r * a.inner]));
      }
    }
    T top = state.top, sum = state.sum;
    if constexpr (Lanes > 1) {
      __syncthreads();  // the states of the columns before have been read
      states[lane][slot] = state;
      __syncthreads();
      top = T(-math::infinity);
      sum = T(0);
#pragma unroll 1
      for (int k = 0; k < Lanes; ++k) top = Larger{}(top, states[k][slot].top);
#pragma unroll 1
      for (int k = 0; k < Lanes; ++k) sum += states[k][slot].share(top);
    }
    const SoftmaxResult<IsLog, T> result(top, sum);
    if (is_column) {
#pragma unroll 4
      for (int64_t r = lane; r < a.length; r += Lanes) {
        to[r * a.inner] = stored<Stored>(result.of(static_cast<T>(from[r * a.inner])));
      }
    }
  }
}

}  // namespace cuop::jit
