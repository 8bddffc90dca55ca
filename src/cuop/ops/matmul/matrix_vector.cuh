// A matrix times a vector, which is as fast as the matrix can be read: each row is a reduction.
#pragma once

#include "cuop/jit/kernels/product_sum.cuh"
#include "cuop/jit/kernels/reduce.cuh"
#include "cuop/ops/matmul/matmul_arguments.cuh"

namespace cuop::jit {

/// One row: packs of Width neighbours, or with Width 1 elements at any step.
template <class T, int Width, bool IsConjugate, class Count>
class VectorProduct {
  using Sum = ProductSum<T>;

 public:
  struct alignas(16) State {
    Sum sum;
  };
  CUOP_FN static State start() { return {Sum(0)}; }
  CUOP_FN static void merge(State& into, const State& other) {
    into.sum = add_sums<T>(into.sum, other.sum);
  }

  CUOP_FN VectorProduct(const MatrixVector& arguments, Count number) : a_(arguments) {
    const Count height = static_cast<Count>(a_.height), matrix = number / height;
    const int64_t row = number - matrix * height;
    line_ = static_cast<const T*>(a_.a) + matrix * a_.a_batch + row * a_.a_row;
    x_ = static_cast<const T*>(a_.x) + matrix * a_.x_batch;
    y_ = static_cast<T*>(a_.y) + matrix * a_.y_batch + row * a_.y_step;
  }

  CUOP_FN void take(State& state, int64_t step) const {
    T from_a[Width], from_x[Width];
    if constexpr (Width > 1) {
      load_pack(from_a, line_ + step * Width);
      load_pack(from_x, x_ + step * Width);
    } else {
      from_a[0] = line_[step * a_.a_column];
      from_x[0] = x_[step * a_.x_step];
    }
#pragma unroll
    for (int k = 0; k < Width; ++k) {
      Sum element = static_cast<Sum>(from_a[k]);
      if constexpr (IsConjugate) element = {element.real(), -element.imag()};
      state.sum = add_product<T>(state.sum, element, static_cast<Sum>(from_x[k]));
    }
  }

  CUOP_FN void finish(const State& state) const {
    store_scaled<T>(y_, a_.alpha.template as<Sum>(), state.sum, a_.beta.template as<Sum>());
  }

 private:
  const MatrixVector& a_;
  const T* line_;
  const T* x_;
  T* y_;
};

template <class T, int Width, bool IsConjugate, int Team, bool IsColumn, class Count>
CUOP_FN void multiply_vector(const MatrixVector& a) {
  const RowShare<Count> share{static_cast<Count>(a.rows), static_cast<Count>(a.steps),
                              static_cast<Count>(a.piece), a.partials, a.arrivals};
  reduce_rows<VectorProduct<T, Width, IsConjugate, Count>, Team, IsColumn, kStepsTogether>(a,
                                                                                           share);
}

}  // namespace cuop::jit
