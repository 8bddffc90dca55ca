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
  const auto bits = (BitsOfLanes<V>)doubt;
  return signs_of((V)(bits + bits));
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

/// Up to kMost elements on their way from x to result; what is between stages fits the cache.
template <class Form, class T>
struct LaneStages {
  static constexpr int kMost = 4096 / static_cast<int>(sizeof(T)), kApart = Form::kApart;
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
      if constexpr (has_first) Form::first(load(x + i * kLanes<T>), stages[i], doubt);
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

/// Whether the result, which may stand where x is, is sure; else x is as it was.
template <class Form, class T>
[[gnu::always_inline]] inline bool are_stages_sure(T* result, const T* x, int count) {
  const int vectors = count / kLanes<T>;
  if (vectors <= LaneStages<Form, T>::kBehind) return false;
  const auto none = LanesOf<T>{};
  if (result == x) {
    auto doubt = none;
    typename Form::Stage stage;
    for (int i = 0; i < vectors; ++i) Form::first(load(x + i * kLanes<T>), stage, doubt);
    if (unsure_lanes(doubt) != 0) return false;
  }
  LaneStages<Form, T> stages;
  stages.x = x;
  stages.result = result;
  return unsure_lanes(stages.run(vectors, none)) == 0;
}

}  // namespace
}  // namespace cuop::jit
#endif
