// The loops of the block kernels. Everything has internal linkage: each *_isa.cpp gets its own.
#pragma once

#include <type_traits>

#include "cuop/jit/cpu/attempts_isa.h"
#include "cuop/jit/cpu/block_kernels.h"
#include "cuop/jit/cpu/lane_arc_isa.h"
#include "cuop/jit/cpu/lane_area_isa.h"
#include "cuop/jit/cpu/lane_circular_isa.h"
#include "cuop/jit/cpu/lane_exponential_isa.h"
#include "cuop/jit/cpu/lane_forms_isa.h"
#include "cuop/jit/cpu/lane_hyperbolic_isa.h"
#include "cuop/jit/cpu/lane_logarithm_isa.h"
#include "cuop/jit/cpu/lane_logistic_isa.h"
#include "cuop/jit/cpu/lane_power_isa.h"
#include "cuop/jit/cpu/lane_tangent_isa.h"
#include "cuop/jit/cpu/lane_unpermuted_isa.h"
#include "cuop/jit/cpu/number_behind_isa.h"
#include "cuop/jit/cpu/quotients_isa.h"
#include "cuop/jit/cpu/two_stages_isa.h"
#include "cuop/jit/kernels/op_list.h"

namespace cuop::jit {
namespace {

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

template <class F, class... Any>
constexpr bool kIsIn = (std::is_same_v<F, Any> || ...);
/// Cheap operations of which one argument is often a number: a block of that number would take as
/// much of the first-level cache as the elements.
template <class F, class T>
constexpr bool kTakesScalars =
    kIsIn<F, fn::Add, fn::Subtract, fn::Multiply> ||
    (!is_complex_type<T> &&
     kIsIn<F, fn::Divide, fn::Maximum, fn::Minimum, fn::Equal, fn::NotEqual, fn::Less,
           fn::LessEqual, fn::Greater, fn::GreaterEqual, fn::Clip>);
/// Operations on integers of which a number behind is prepared.
template <class F, class T>
constexpr bool kPreparesNumber =
    is_integer_type<T>&& kIsIn<F, fn::FloorDivide, fn::Remainder, fn::Power>;

template <class F, class T>
void run_with_scalar_before(void* out, const void* first, const void* second, const void*,
                            int64_t n) {
  promise_whole_vectors(n);
  const T a = *static_cast<const T*>(first);
  const auto* b = static_cast<const T*>(second);
  auto* result = static_cast<decltype(F::template apply<T>(a, *b))*>(out);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) result[i] = F::template apply<T>(a, b[i]);
}
template <class F, class T>
void run_with_scalars_behind(void* out, const void* first, const void* second, const void* third,
                             int64_t n) {
  promise_whole_vectors(n);
  const auto* a = static_cast<const T*>(first);
  const T b = *static_cast<const T*>(second);
  if constexpr (F::arity == 3) {
    const T c = *static_cast<const T*>(third);
    auto* result = static_cast<T*>(out);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) result[i] = F::template apply<T>(a[i], b, c);
  } else {
    auto* result = static_cast<decltype(F::template apply<T>(*a, b))*>(out);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) result[i] = F::template apply<T>(a[i], b);
  }
}

/// Functions of one argument that are computed in two loops, each with a shorter chain of steps:
/// more elements are at work side by side then.
template <class F, class T>
concept HasStages = is_float_type<T> && requires(T x) {
  Attempts<F>::prepare(x);
};

/// Operations with a quick way that is not always sure. Of a block where it is not, sixteen
/// elements at a time, and those of them again by the slow way for which it was not, so that a
/// value does not depend on its neighbours.
template <class F, class T>
concept HasAttempt = is_float_type<T> &&(
    HasStages<F, T> || requires(T x, accurate::Doubt<T> d) { Attempts<F>::attempt(x, d); } ||
    requires(T x, unsigned u) { Attempts<F>::attempt(x, x, u); });

template <class F, class T>
[[gnu::always_inline]] inline T attempt(T x, accurate::Doubt<T>& doubt) {
  if constexpr (HasStages<F, T>) {
    return Attempts<F>::attempt(x, Attempts<F>::prepare(x), doubt);
  } else {
    return Attempts<F>::attempt(x, doubt);
  }
}

/// A whole block the quick way; its doubt. The loops are functions of their own, so that the
/// constants of others leave them the registers.
template <class F, class T>
[[gnu::noinline]] accurate::Doubt<T> run_quick_block(T* result, const T* a, int64_t n) {
  promise_whole_vectors(n);
  accurate::Doubt<T> doubt = 0;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) result[i] = attempt<F>(a[i], doubt);
  return doubt;
}

template <class F, class T>
accurate::Doubt<T> run_quickly(T* result, const T* a, int64_t n) {
  if constexpr (HasStages<F, T>) {
    constexpr int kCount = decltype(Attempts<F>::prepare(T()))::kCount;
    if constexpr (kCount > 0) return run_two_stages<F, kCount>(result, a, n);
  }
  return run_quick_block<F>(result, a, n);
}

/// Functions of one argument: the whole block the quick way; whether that is sure of all of it.
/// Over its argument nothing is written before that is known.
template <class F, class T>
bool run_sure_block(T* result, const T* a, int64_t n) {
  if (result == a) {
    promise_whole_vectors(n);
    accurate::Doubt<T> doubt = 0;
    for (int64_t i = 0; i < n; ++i) (void)attempt<F>(a[i], doubt);
    if (accurate::is_any(doubt)) return false;
  }
  return !accurate::is_any(run_quickly<F>(result, a, n));
}

template <class F, class T>
void run_attempts(void* out, const void* first, const void* second, const void*, int64_t n) {
  promise_whole_vectors(n);
  const auto* a = static_cast<const T*>(first);
  [[maybe_unused]] const auto* b = static_cast<const T*>(second);
  auto* result = static_cast<T*>(out);
  constexpr bool is_unary = F::arity == 1;
  if constexpr (is_unary) {
    if (run_sure_block<F, T>(result, a, n)) return;
  }
  using Unsure = std::conditional_t<is_unary, accurate::Doubt<T>, unsigned>;
  const auto is_unsure = [](Unsure u) { return is_unary ? accurate::is_any(u) : u != 0; };
  for (int64_t i = 0; i < n; i += kBlockMultiple) {
    T values[kBlockMultiple];
    Unsure unsure[kBlockMultiple], any = 0;
    for (int k = 0; k < kBlockMultiple; ++k) {
      unsure[k] = 0;
      if constexpr (is_unary) {
        values[k] = attempt<F>(a[i + k], unsure[k]);
      } else {
        values[k] = Attempts<F>::attempt(a[i + k], b[i + k], unsure[k]);
      }
      any |= unsure[k];
    }
    for (int k = 0; is_unsure(any) && k < kBlockMultiple; ++k) {
      if (!is_unsure(unsure[k])) continue;
      if constexpr (is_unary) {
        values[k] = F::apply(a[i + k]);
      } else {
        values[k] = F::apply(a[i + k], b[i + k]);
      }
    }
    for (int k = 0; k < kBlockMultiple; ++k) result[i + k] = values[k];
  }
}

/// Functions of one argument with a form for whole vectors.
template <class F, class T>
concept HasLaneForm = requires {
  sizeof(LaneForm<F, T>);
};

template <class F, class T, class Fetch>
void run_lanes(void* out, const void* first, const void*, const void*, int64_t n) {
  promise_whole_vectors(n);
  run_lane_form<F, T, Fetch>(static_cast<T*>(out), static_cast<const T*>(first), n);
}

#ifdef CUOP_HAS_UNPERMUTED_KERNELS
template <class F, class T>
concept HasUnpermutedForm = requires {
  sizeof(UnpermutedForm<F, T>);
};
template <class F, class T>
void run_unpermuted(void* out, const void* first, const void*, const void*, int64_t n) {
  promise_whole_vectors(n);
  run_stages<F, UnpermutedForm<F, T>>(static_cast<T*>(out), static_cast<const T*>(first), n);
}
#endif

/// As run_lanes, of two arguments.
template <class F, class T>
void run_lane_pairs(void* out, const void* first, const void* second, const void*, int64_t n) {
  promise_whole_vectors(n);
  run_pairs<F>(static_cast<T*>(out), static_cast<const T*>(first), static_cast<const T*>(second),
               n);
}

template <class F, class T>
constexpr BlockKernel block_kernel() {
  if constexpr (HasLaneForm<F, T> && F::arity == 2) {
    return run_lane_pairs<F, T>;
  } else if constexpr (HasLaneForm<F, T>) {
    return run_lanes<F, T, LoadedRows>;
  } else if constexpr (HasAttempt<F, T>) {
    return run_attempts<F, T>;
  } else if constexpr (is_integer_type<T> && kIsIn<F, fn::FloorDivide, fn::Remainder>) {
    return run_quotients<F, T>;
  } else {
    return run_block<F, T>;
  }
}

template <class T>
constexpr unsigned kind_of_type = is_bool_type<T>      ? kBools
                                  : is_integer_type<T> ? kIntegers
                                  : is_float_type<T>   ? kFloats
                                                       : kComplexes;

/// Those where arguments are one element for all; null where an operation has none.
template <class F, class T>
constexpr ScalarKernels scalar_kernels() {
  ScalarKernels kernels;
  if constexpr (kPreparesNumber<F, T>) {
    kernels.behind = run_with_number_behind<F, T>;
  } else if constexpr (kTakesScalars<F, T>) {
    kernels.behind = run_with_scalars_behind<F, T>;
    if constexpr (F::arity == 2) kernels.before = run_with_scalar_before<F, T>;
  }
  return kernels;
}

template <class F, class T>
void add_op_kernel(BlockTable& table) {
  if constexpr ((F::kinds & kind_of_type<T>) != 0) {
    constexpr auto kCode = static_cast<size_t>(op_code<F>);
    constexpr auto kDType = static_cast<size_t>(dtype_of<T>);
    table.ops[kCode][kDType] = block_kernel<F, T>();
    table.scalar_ops[kCode][kDType] = scalar_kernels<F, T>();
  }
}

/// That of a function by a table, whose rows it gathers; null where there is none.
template <class F, class T>
constexpr BlockKernel gathering_kernel() {
#ifdef CUOP_HAS_GATHERED_ROWS
  if constexpr (HasLaneForm<F, T> && F::arity == 1) {
    if constexpr (HasTable<LaneForm<F, T>>) return run_lanes<F, T, GatheredRows>;
  }
#endif
  return nullptr;
}

/// That of a function with a form without permutations; null where there is none.
template <class F, class T>
constexpr BlockKernel unpermuted_kernel() {
#ifdef CUOP_HAS_UNPERMUTED_KERNELS
  if constexpr (HasUnpermutedForm<F, T>) return run_unpermuted<F, T>;
#endif
  return nullptr;
}

/// Enters the kernel of an operation, if there is one, in the place of what it had.
template <class F, class T>
void replace_op_kernel(BlockTable& table, BlockKernel kernel) {
  if (kernel == nullptr) return;
  table.ops[static_cast<size_t>(op_code<F>)][static_cast<size_t>(dtype_of<T>)] = kernel;
}

/// Enters those of all operations.
template <class T, class... F>
void add_gathering_kernels_of(BlockTable& table, FunctorList<F...>) {
  (replace_op_kernel<F, T>(table, gathering_kernel<F, T>()), ...);
}
template <class T, class... F>
void add_unpermuted_kernels_of(BlockTable& table, FunctorList<F...>) {
  (replace_op_kernel<F, T>(table, unpermuted_kernel<F, T>()), ...);
}

/// Enters the kernels of every operation that takes T.
template <class T, class... F>
void add_op_kernels(BlockTable& table, FunctorList<F...>) {
  static_assert(sizeof...(F) <= kMaxOps);
  (add_op_kernel<F, T>(table), ...);
}

}  // namespace
}  // namespace cuop::jit
