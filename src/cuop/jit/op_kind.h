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
  kBool,     ///< computed in the promoted dtype, returns bool
  kReal,     ///< computed in the promoted dtype, returns its real part's dtype
  kSelect,   ///< the first argument is a bool; the others as kSame
};

/// How far a result may be from the true one, in units in the last place of the result, in float32
/// and float64 on a CPU: 0.5 is correct rounding. 0 where nothing is rounded, or nothing stated.
struct Ulps {
  double float32 = 0, float64 = 0;
};

}  // namespace cuop::jit
