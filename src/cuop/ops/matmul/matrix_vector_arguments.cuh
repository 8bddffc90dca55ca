// What the kernel of a matrix times a vector is given; host and device read the same struct. Steps
// are in elements.
#pragma once

#include "cuop/jit/kernels/prelude.h"

namespace cuop::jit {

/// alpha or beta in every form that a sum may need.
struct Coefficient {
  double real, imag;
  uint64_t bits;  ///< modulo 2^64; of bool 0 or 1

  template <class Sum>
  CUOP_FN Sum as() const {
    if constexpr (is_complex_type<Sum>) {
      using R = RealType<Sum>;
      return {static_cast<R>(real), static_cast<R>(imag)};
    } else if constexpr (is_float_type<Sum>) {
      return static_cast<Sum>(real);
    } else {
      return static_cast<Sum>(bits);
    }
  }
};

/// y <- alpha * a @ x + beta * y for matrices a of `height` rows; their rows are counted together,
/// `steps` accesses of one or more columns each.
struct MatrixVector {
  const void* a;
  const void* x;
  void* y;
  int64_t rows, height, steps;
  int64_t a_row, a_column, x_step, y_step;
  int64_t a_batch, x_batch, y_batch;  ///< from one matrix to the next
  Coefficient alpha, beta;
  int64_t piece;  ///< steps of one block
  void* partials;
  unsigned* arrivals;
};

}  // namespace cuop::jit
