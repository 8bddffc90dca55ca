// What a row of the elementwise table says about an operation's types.
#pragma once

namespace cuop::jit {

/// The dtype kinds in which an operation can be computed; combined by |.
inline constexpr unsigned kBools = 1;
inline constexpr unsigned kIntegers = 2;
inline constexpr unsigned kFloats = 4;
inline constexpr unsigned kComplexes = 8;
inline constexpr unsigned kNo16Bit = 16;  ///< but not float16 and bfloat16 (computed in float32)
inline constexpr unsigned kReals = kIntegers | kFloats;
inline constexpr unsigned kNumbers = kReals | kComplexes;
inline constexpr unsigned kEverything = kNumbers | kBools;

/// How the dtypes of an operation's result and of its computation follow from its arguments.
enum class Rule {
  kSame,     ///< both are the promoted dtype of the arguments
  kInexact,  ///< the same, after integers and bool have become float64
  kBool,     ///< computed in the promoted dtype, answers bool
  kReal,     ///< computed in the promoted dtype, answers its real part's dtype
  kSelect,   ///< the first argument is a bool; the others as kSame
};

/// Base of every functor: its row in the table. `cost` is the rough price of one element, an
/// addition being 1; it decides how finely work is shared among threads.
template <int Arity, unsigned Kinds, Rule R, int Cost = 1>
struct Row {
  static constexpr int arity = Arity;
  static constexpr unsigned kinds = Kinds;
  static constexpr Rule rule = R;
  static constexpr int cost = Cost;
  /// The arguments' names; a functor with better ones declares its own.
  static constexpr const char* parameters[3] = {Arity == 1 ? "x" : "x1", "x2", "x3"};
};

}  // namespace cuop::jit
