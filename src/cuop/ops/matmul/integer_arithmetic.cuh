// Sums of products of integers, which wrap around, and of bools, "or" of "and".
#pragma once

#include "cuop/jit/kernels/prelude.h"

namespace cuop::jit {

/// Sums modulo 2^bits are exact in any unsigned type that is at least as wide as T.
template <class T>
using WholeSum = WrapType<T>;

template <class T>
CUOP_FN WholeSum<T> add_product(WholeSum<T> sum, WholeSum<T> a, WholeSum<T> b) {
  if constexpr (is_bool_type<T>) {
    return sum | (a & b);
  } else {
    return sum + a * b;
  }
}

/// to <- alpha * sum + beta * to; a beta of 0 does not read.
template <class T>
CUOP_FN void store_scaled(T* to, WholeSum<T> alpha, WholeSum<T> sum, WholeSum<T> beta) {
  WholeSum<T> result = add_product<T>(0, alpha, sum);
  if (beta != 0) result = add_product<T>(result, beta, wrap(*to));
  *to = wrapped<T>(result);
}

}  // namespace cuop::jit
