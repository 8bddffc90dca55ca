// The loops of the block kernels. Everything has internal linkage: each *_isa.cpp gets its own.
#pragma once

#include <type_traits>

#include "cuop/jit/cpu/block_kernels.h"
#include "cuop/jit/kernels/op_list.h"

namespace cuop::jit {
namespace {

[[gnu::always_inline]] inline void promise_whole_vectors(int64_t n) {
  if (n % kBlockMultiple != 0 || n < 0) __builtin_unreachable();
}

template <class F, class T>
void run_block(void* out, const void* first, const void* second, const void* third, int64_t n) {
  promise_whole_vectors(n);
  const auto* b = static_cast<const T*>(second);
  // The result may be written over an argument, element upon element, which ivdep permits.
  if constexpr (F::rule == Rule::kSelect) {
    const auto* condition = static_cast<const uint8_t*>(first);  // bools: 0 or 1
    const auto* c = static_cast<const T*>(third);
    auto* result = static_cast<T*>(out);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) result[i] = F::template apply<T>(condition[i], b[i], c[i]);
  } else if constexpr (F::arity == 1) {
    const auto* a = static_cast<const T*>(first);
    auto* result = static_cast<decltype(F::template apply<T>(*a))*>(out);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) result[i] = F::template apply<T>(a[i]);
  } else if constexpr (F::arity == 2) {
    const auto* a = static_cast<const T*>(first);
    auto* result = static_cast<decltype(F::template apply<T>(*a, *b))*>(out);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) result[i] = F::template apply<T>(a[i], b[i]);
  } else {
    const auto* a = static_cast<const T*>(first);
    const auto* c = static_cast<const T*>(third);
    auto* result = static_cast<T*>(out);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) result[i] = F::template apply<T>(a[i], b[i], c[i]);
  }
}

/// Operations with a quick way that is not always sure. Of a block where it is not, sixteen
/// elements at a time, and those of them again by the slow way for which it was not, so that a
/// value does not depend on its neighbours.
template <class F, class T>
concept HasAttempt = is_float_type<T> &&(
    requires(T x, unsigned u) { F::attempt(x, u); } ||
    requires(T x, unsigned u) { F::attempt(x, x, u); });

/// Functions of one argument: the whole block the quick way; whether that is sure of all of it.
/// Over its argument nothing is written before that is known, nor where instructions are missing
/// that compare doubles beside their arithmetic: loops that did both would not be vectorised there.
/// A function of its own, so that the constants of other loops leave it the registers.
template <class F, class T>
[[gnu::noinline]] bool run_sure_block(T* result, const T* a, int64_t n) {
  promise_whole_vectors(n);
  constexpr bool is_one_pass_quick = sizeof(T) == 4 || math::has_fast_fma;
  // Of one width with the elements where that saves conversions.
  using Flag = std::conditional_t<is_one_pass_quick, accurate::BitsOf<T>, unsigned>;
  Flag is_any_unsure = 0;
  if (is_one_pass_quick && result != a) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      unsigned is_unsure = 0;
      result[i] = F::attempt(a[i], is_unsure);
      is_any_unsure |= Flag(is_unsure != 0);
    }
    return is_any_unsure == 0;
  }
  for (int64_t i = 0; i < n; ++i) {
    unsigned is_unsure = 0;
    (void)F::attempt(a[i], is_unsure);
    is_any_unsure |= Flag(is_unsure != 0);
  }
  if (is_any_unsure != 0) return false;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    unsigned ignored = 0;
    result[i] = F::attempt(a[i], ignored);
  }
  return true;
}

template <class F, class T>
void run_attempts(void* out, const void* first, const void* second, const void*, int64_t n) {
  promise_whole_vectors(n);
  const auto* a = static_cast<const T*>(first);
  [[maybe_unused]] const auto* b = static_cast<const T*>(second);
  auto* result = static_cast<T*>(out);
  if constexpr (F::arity == 1) {
    if (run_sure_block<F, T>(result, a, n)) return;
  }
  for (int64_t i = 0; i < n; i += kBlockMultiple) {
    T values[kBlockMultiple];
    unsigned is_unsure[kBlockMultiple], is_any_unsure = 0;
    for (int k = 0; k < kBlockMultiple; ++k) {
      is_unsure[k] = 0;
      if constexpr (F::arity == 1) {
        values[k] = F::attempt(a[i + k], is_unsure[k]);
      } else {
        values[k] = F::attempt(a[i + k], b[i + k], is_unsure[k]);
      }
      is_any_unsure |= is_unsure[k];
    }
    for (int k = 0; is_any_unsure != 0 && k < kBlockMultiple; ++k) {
      if (is_unsure[k] == 0) continue;
      if constexpr (F::arity == 1) {
        values[k] = F::apply(a[i + k]);
      } else {
        values[k] = F::apply(a[i + k], b[i + k]);
      }
    }
    for (int k = 0; k < kBlockMultiple; ++k) result[i + k] = values[k];
  }
}

template <class F, class T>
constexpr BlockKernel block_kernel() {
  if constexpr (HasAttempt<F, T>) {
    return run_attempts<F, T>;
  } else {
    return run_block<F, T>;
  }
}

template <class T>
constexpr unsigned kind_of_type = is_bool_type<T>      ? kBools
                                  : is_integer_type<T> ? kIntegers
                                  : is_float_type<T>   ? kFloats
                                                       : kComplexes;

template <class F, class T>
void add_op_kernel(BlockTable& table) {
  if constexpr ((F::kinds & kind_of_type<T>) != 0) {
    table.ops[static_cast<size_t>(op_code<F>)][static_cast<size_t>(dtype_of<T>)] =
        block_kernel<F, T>();
  }
}

/// Enters the kernels of every operation that takes T.
template <class T, class... F>
void add_op_kernels(BlockTable& table, FunctorList<F...>) {
  static_assert(sizeof...(F) <= kMaxOps);
  (add_op_kernel<F, T>(table), ...);
}

}  // namespace
}  // namespace cuop::jit
