// Sums of products in every dtype: bool is "or" of "and", integers wrap, 16-bit floats are added up
// in float.
#pragma once

#include "cuop/jit/kernels/rows.cuh"

namespace cuop::jit {

/// bool and integers, not the structs of 16-bit floats.
template <class T>
inline constexpr bool is_whole_type = is_bool_type<T> || (is_integer_type<T> && !__is_class(T));

namespace detail {
template <class T, bool IsWhole>
struct ProductSumOf {
  using type = Computed<T>;
};
template <class T>
struct ProductSumOf<T, true> {
  using type = WrapType<T>;
};
}  // namespace detail
/// Sums modulo 2^bits are exact in any unsigned type that is at least as wide as T.
template <class T>
using ProductSum = typename detail::ProductSumOf<T, is_whole_type<T>>::type;

template <class T>
CUOP_FN ProductSum<T> add_sums(ProductSum<T> a, ProductSum<T> b) {
  if constexpr (is_bool_type<T>) {
    return a | b;
  } else {
    return a + b;
  }
}
template <class T>
CUOP_FN ProductSum<T> add_product(ProductSum<T> sum, ProductSum<T> a, ProductSum<T> b) {
  if constexpr (is_bool_type<T>) {
    return sum | (a & b);
  } else if constexpr (is_complex_type<T>) {
    return {sum.real() + (a.real() * b.real() - a.imag() * b.imag()),
            sum.imag() + (a.real() * b.imag() + a.imag() * b.real())};
  } else {
    return sum + a * b;
  }
}

/// A sum as an element.
template <class T>
CUOP_FN T from_sum(ProductSum<T> sum) {
  if constexpr (is_whole_type<T>) {
    return wrapped<T>(sum);
  } else {
    return stored<T>(sum);
  }
}

/// to <- alpha * sum + beta * to; a beta of 0 does not read.
template <class T>
CUOP_FN void store_scaled(T* to, ProductSum<T> alpha, ProductSum<T> sum, ProductSum<T> beta) {
  using Sum = ProductSum<T>;
  Sum result = add_product<T>(Sum(0), alpha, sum);
  if (beta != Sum(0)) result = add_product<T>(result, beta, static_cast<Sum>(*to));
  *to = from_sum<T>(result);
}

}  // namespace cuop::jit
