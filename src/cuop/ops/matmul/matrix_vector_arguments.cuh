// What the kernel of a matrix times a vector is given; host and device read the same struct. Steps
// are in elements.
#pragma once

#include "cuop/jit/kernels/prelude.h"

namespace cuop::jit {

/// alpha or beta in every form that a sum may need.
struct Coefficient {
  double real, imag;
  uint64_t bits;  ///< modulo 2^64; of bool 0 or 1
};

/// y <- alpha * a @ x + beta * y for a [rows, columns].
struct MatrixVector {
  const void* a;
  const void* x;
  void* y;
  int64_t rows, steps;  ///< steps of a row: accesses of one or more columns
  int64_t a_row, a_column, x_step, y_step;
  Coefficient alpha, beta;
  int64_t piece;  ///< steps of one block
  void* partials;
  unsigned* arrivals;
};

}  // namespace cuop::jit
