// Functions of one argument in two stages: the first ends where a quotient or a root begins, which
// the second needs. Everything has internal linkage: each *_isa.cpp gets its own.
#pragma once

#include "cuop/jit/cpu/attempts_isa.h"
#include "cuop/jit/cpu/block_kernels.h"
#include "cuop/jit/cpu/lane_stages_isa.h"

namespace cuop::jit {
namespace {

[[gnu::always_inline]] inline void promise_whole_vectors(int64_t n) {
  if (n % kBlockMultiple != 0 || n < 0) __builtin_unreachable();
}

/// Whether the first stage has neither a quotient nor a root: then two loops take less time.
template <class F>
concept HasShortStages = requires {
  requires Attempts<F>::has_short_stages;
};

/// So few that the second loop begins while the last quotients and roots of the first are at work.
inline constexpr int64_t kStagedElements = 128;
template <class T, int Count>
using StageRows = T[Count][kStagedElements];

template <class F, class T, int Count>
[[gnu::noinline]] void prepare_block(StageRows<T, Count>& rows, const T* a, int64_t n) {
  promise_whole_vectors(n);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const accurate::Stage<T, Count> stage = Attempts<F>::prepare(a[i]);
    for (int k = 0; k < Count; ++k) rows[k][i] = stage.values[k];
  }
}
template <class F, class T, int Count>
[[gnu::noinline]] accurate::Doubt<T> finish_block(T* result, const StageRows<T, Count>& rows,
                                                  const T* a, int64_t n) {
  promise_whole_vectors(n);
  accurate::Doubt<T> doubt = 0;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    accurate::Stage<T, Count> stage;
    for (int k = 0; k < Count; ++k) stage.values[k] = rows[k][i];
    result[i] = Attempts<F>::attempt(a[i], stage, doubt);
  }
  return doubt;
}
template <class F, int Count, class T>
[[gnu::always_inline]] inline accurate::Doubt<T> run_two_loops(T* result, const T* a, int64_t n) {
  alignas(64) StageRows<T, Count> rows;
  accurate::Doubt<T> doubt = 0;
  for (int64_t i = 0; i < n; i += kStagedElements) {
    const int64_t count = n - i < kStagedElements ? n - i : kStagedElements;
    prepare_block<F, T, Count>(rows, a + i, count);
    doubt |= finish_block<F, T, Count>(result + i, rows, a + i, count);
  }
  return doubt;
}

#ifdef CUOP_HAS_LANE_FORMS
/// One loop, in which each vector's second stage follows the first one of the vector kApart behind
/// it: quotients and products overlap. The loops over a vector become single operations, unless
/// compilers unroll them first. At most kMost elements.
template <class F, class T, int Count>
struct Overlapped {
  static constexpr int kWide = kLanes<T>, kApart = 8, kMost = 4096 / static_cast<int>(sizeof(T));

  [[gnu::noinline]] static accurate::Doubt<T> run(T* result, const T* a, int n) {
    promise_whole_vectors(n);
    alignas(64) T rows[kMost / kWide][Count][kWide];
    alignas(64) accurate::Doubt<T> doubts[kWide] = {};
    const auto prepare = [&](int i) __attribute__((always_inline)) {
      fetch_ahead(result + i * kWide);
#pragma GCC ivdep
#pragma GCC unroll 1
      for (int k = 0; k < kWide; ++k) {
        const accurate::Stage<T, Count> stage = Attempts<F>::prepare(a[i * kWide + k]);
        for (int c = 0; c < Count; ++c) rows[i][c][k] = stage.values[c];
      }
      keep_order();
    };
    const auto finish = [&](int i) __attribute__((always_inline)) {
#pragma GCC ivdep
#pragma GCC unroll 1
      for (int k = 0; k < kWide; ++k) {
        accurate::Stage<T, Count> stage;
        for (int c = 0; c < Count; ++c) stage.values[c] = rows[i][c][k];
        T& y = result[i * kWide + k];
        y = Attempts<F>::attempt(a[i * kWide + k], stage, doubts[k]);
      }
      keep_order();
    };
    const int vectors = n / kWide, first = vectors < kApart ? vectors : kApart;
    for (int i = 0; i < first; ++i) prepare(i);
    for (int i = first; i < vectors; ++i) {
      finish(i - first);
      prepare(i);
    }
    for (int i = vectors - first; i < vectors; ++i) finish(i);
    accurate::Doubt<T> doubt = 0;
    for (int k = 0; k < kWide; ++k) doubt |= doubts[k];
    return doubt;
  }
};
#endif

/// Its doubt.
template <class F, int Count, class T>
accurate::Doubt<T> run_two_stages(T* result, const T* a, int64_t n) {
#ifdef CUOP_HAS_LANE_FORMS
  if constexpr (!HasShortStages<F>) {
    using Loop = Overlapped<F, T, Count>;
    accurate::Doubt<T> doubt = 0;
    for (int64_t i = 0; i < n; i += Loop::kMost) {
      const int count = n - i < Loop::kMost ? static_cast<int>(n - i) : Loop::kMost;
      doubt |= Loop::run(result + i, a + i, count);
    }
    return doubt;
  }
#endif
  return run_two_loops<F, Count>(result, a, n);
}

}  // namespace
}  // namespace cuop::jit
