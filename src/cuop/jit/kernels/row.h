// What a functor says about its row of the elementwise table.
#pragma once

#include "cuop/jit/op_kind.h"

namespace cuop::jit {

#ifdef __CUDACC_RTC__
/// A kernel needs the arithmetic alone.
template <int Arity, unsigned Kinds, Rule R, int Cost = 1>
struct Row {};
#else
/// Base of every functor: its row in the table. `cost` is the rough price of one element, an
/// addition being 1; it decides how finely work is shared among threads.
template <int Arity, unsigned Kinds, Rule R, int Cost = 1>
struct Row {
  static constexpr int arity = Arity;
  static constexpr unsigned kinds = Kinds;
  static constexpr Rule rule = R;
  static constexpr int cost = Cost;
  /// The largest errors found (tests/jit/accuracy_test.cpp); a functor that rounds declares its
  /// own.
  static constexpr Ulps ulps{};
  /// The arguments' names; a functor with better ones declares its own.
  static constexpr const char* parameters[3] = {Arity == 1 ? "x" : "x1", "x2", "x3"};
};
#endif

namespace fn {

inline constexpr unsigned kFloatComplex = kFloats | kComplexes;
template <unsigned Kinds>
using UnaryMath = Row<1, Kinds, Rule::kInexact, 16>;

}  // namespace fn

}  // namespace cuop::jit
