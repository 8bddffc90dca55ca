// Forms for whole vectors in stages. A processor looks only some hundred operations ahead, which
// is less than a division and two polynomials of a few vectors: here each stage works on a vector
// some places behind the stage before it, so that what is next has what it needs.
#pragma once

#include "cuop/jit/cpu/lanes_isa.h"

#ifdef CUOP_HAS_LANE_FORMS
namespace cuop::jit {
namespace {

/// `Stage` is what stays between stages: `first` makes it of the argument, `middle`, if there is
/// one, changes it, `last` makes the result of it. Each is kApart vectors behind the one before.
template <class Form>
concept HasLaneStages = requires {
  typename Form::Stage;
};
template <class Form>
concept HasMiddleStage = requires(typename Form::Stage stage) {
  Form::middle(stage);
};

template <class Form, class V>
[[gnu::always_inline]] inline V apply_stages(V x) {
  V doubt{};
  typename Form::Stage stage;
  Form::first(x, stage, doubt);
  if constexpr (HasMiddleStage<Form>) Form::middle(stage);
  return Form::last(stage, x);
}

/// A bit of each lane where `doubt`, which may be that of several vectors, has the bit behind the
/// sign: of a number it is 1 from 2 on, and of NaN.
template <class V>
[[gnu::always_inline]] inline int unsure_lanes(V doubt) {
  return bits_after_signs_of(doubt);
}
/// The lanes of x that are not covered.
template <class Form, class V>
[[gnu::always_inline]] inline int unsure_of(V x) {
  V doubt{};
  typename Form::Stage stage;
  Form::first(x, stage, doubt);
  return unsure_lanes(doubt);
}

/// Compilers would mix the stages otherwise, which takes more registers and some per cent more
/// time.
[[gnu::always_inline]] inline void keep_order() { asm volatile("" ::: "memory"); }

/// So many elements are on their way at once: what is between stages fits the cache.
template <class T>
constexpr int kMostStaged = 4096 / static_cast<int>(sizeof(T));

/// Up to kMost elements on their way from x to result.
template <class Form, class T>
struct LaneStages {
  static constexpr int kMost = kMostStaged<T>, kApart = Form::kApart;
  static constexpr int kBehind = HasMiddleStage<Form> ? 2 * kApart : kApart;

  const T* x;
  T* result;
  alignas(64) typename Form::Stage stages[kMost / kLanes<T>];

  /// From vector `begin` on its first stage, if it has one, and the others of those before it.
  template <bool has_first, bool has_middle, bool has_last, class V>
  [[gnu::always_inline]] V step(int begin, int end, V doubt) {
    for (int i = begin; i < end; ++i) {
      if constexpr (has_middle && HasMiddleStage<Form>) Form::middle(stages[i - kApart]);
      keep_order();
      if constexpr (has_last) {
        const int k = i - kBehind;
        store<T>(result + k * kLanes<T>, Form::last(stages[k], load(x + k * kLanes<T>)));
      }
      keep_order();
      if constexpr (has_first) {
        fetch_ahead(result + i * kLanes<T>);
        Form::first(load(x + i * kLanes<T>), stages[i], doubt);
      }
    }
    return doubt;
  }
  /// More than kBehind vectors; the doubt of all.
  template <class V>
  [[gnu::always_inline]] V run(int vectors, V doubt) {
    doubt = step<true, false, false>(0, kApart, doubt);
    doubt = step<true, true, false>(kApart, kBehind, doubt);
    doubt = step<true, true, true>(kBehind, vectors, doubt);
    step<false, true, true>(vectors, vectors + kBehind - kApart, doubt);
    step<false, false, true>(vectors + kBehind - kApart, vectors + kBehind, doubt);
    return doubt;
  }
};

/// The same in registers, of forms without kApart: two vectors' last stage beside the first one of
/// the next two, and nothing is stored between them.
template <class Form, class T>
struct RegisterStages {
  static constexpr int kMost = kMostStaged<T>, kApart = 2, kBehind = kApart - 1;

  const T* x;
  T* result;

  /// A multiple of kApart vectors; the doubt of all.
  template <class V>
  [[gnu::always_inline]] V run(int vectors, V doubt) const {
    return run_from(result, x, vectors * kLanes<T>, doubt);
  }
  /// A function of its own, so that it has all registers.
  template <class V>
  [[gnu::noinline]] static V run_from(T* result, const T* x, int64_t n, V doubt) {
    constexpr int kWide = kLanes<T>, kStep = kApart * kWide;
    typename Form::Stage stages[kApart];
    for (int k = 0; k < kApart; ++k) Form::first(load(x + k * kWide), stages[k], doubt);
    int64_t i = 0;
    for (; i < n - kStep; i += kStep) {
      for (int k = 0; k < kApart; ++k) {
        const int64_t at = i + k * kWide;
        fetch_ahead(result + at);
        store<T>(result + at, Form::last(stages[k], load(x + at)));
        Form::first(load(x + at + kStep), stages[k], doubt);
      }
    }
    for (int k = 0; k < kApart; ++k) {
      const int64_t at = i + k * kWide;
      store<T>(result + at, Form::last(stages[k], load(x + at)));
    }
    return doubt;
  }
};

/// Which of both a form takes.
template <class Form, class T>
struct ChosenStages {
  using Type = RegisterStages<Form, T>;
};
template <class Form, class T>
requires requires { Form::kApart; }
struct ChosenStages<Form, T> {
  using Type = LaneStages<Form, T>;
};
template <class Form, class T>
using StagesOf = typename ChosenStages<Form, T>::Type;

/// Whether the result, which may stand where x is, is sure; else x is as it was.
template <class Form, class T>
[[gnu::always_inline]] inline bool are_stages_sure(T* result, const T* x, int count) {
  const int vectors = count / kLanes<T>;
  if (vectors <= StagesOf<Form, T>::kBehind) return false;
  const auto none = LanesOf<T>{};
  if (result == x) {
    auto doubt = none;
    typename Form::Stage stage;
    for (int i = 0; i < vectors; ++i) Form::first(load(x + i * kLanes<T>), stage, doubt);
    if (unsure_lanes(doubt) != 0) return false;
  }
  StagesOf<Form, T> stages;
  stages.x = x;
  stages.result = result;
  return unsure_lanes(stages.run(vectors, none)) == 0;
}

}  // namespace
}  // namespace cuop::jit
#endif
