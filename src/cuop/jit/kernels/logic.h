// Functors of comparison, logic, bits, rounding, selection and classification.
#pragma once

#include "cuop/jit/kernels/prelude.h"
#include "cuop/jit/kernels/row.h"

namespace cuop::jit::fn {

inline constexpr unsigned kOrdered = kBools | kReals;

struct Equal : Row<2, kEverything, Rule::kBool> {
  static constexpr const char* name = "equal";
  static constexpr const char* doc = "x1 == x2.";
  template <class T>
  CUOP_FN static bool apply(T a, T b) {
    return a == b;
  }
};

struct NotEqual : Row<2, kEverything, Rule::kBool> {
  static constexpr const char* name = "not_equal";
  static constexpr const char* doc = "x1 != x2.";
  template <class T>
  CUOP_FN static bool apply(T a, T b) {
    return a != b;
  }
};

struct Less : Row<2, kOrdered, Rule::kBool> {
  static constexpr const char* name = "less";
  static constexpr const char* doc = "x1 < x2.";
  template <class T>
  CUOP_FN static bool apply(T a, T b) {
    return a < b;
  }
};

struct LessEqual : Row<2, kOrdered, Rule::kBool> {
  static constexpr const char* name = "less_equal";
  static constexpr const char* doc = "x1 <= x2.";
  template <class T>
  CUOP_FN static bool apply(T a, T b) {
    return a <= b;
  }
};

struct Greater : Row<2, kOrdered, Rule::kBool> {
  static constexpr const char* name = "greater";
  static constexpr const char* doc = "x1 > x2.";
  template <class T>
  CUOP_FN static bool apply(T a, T b) {
    return a > b;
  }
};

struct GreaterEqual : Row<2, kOrdered, Rule::kBool> {
  static constexpr const char* name = "greater_equal";
  static constexpr const char* doc = "x1 >= x2.";
  template <class T>
  CUOP_FN static bool apply(T a, T b) {
    return a >= b;
  }
};

struct LogicalAnd : Row<2, kEverything, Rule::kBool> {
  static constexpr const char* name = "logical_and";
  static constexpr const char* doc = "Whether both are nonzero.";
  template <class T>
  CUOP_FN static bool apply(T a, T b) {
    return truth(a) & truth(b);
  }
};

struct LogicalOr : Row<2, kEverything, Rule::kBool> {
  static constexpr const char* name = "logical_or";
  static constexpr const char* doc = "Whether one of the two is nonzero.";
  template <class T>
  CUOP_FN static bool apply(T a, T b) {
    return truth(a) | truth(b);
  }
};

struct LogicalXor : Row<2, kEverything, Rule::kBool> {
  static constexpr const char* name = "logical_xor";
  static constexpr const char* doc = "Whether exactly one of the two is nonzero.";
  template <class T>
  CUOP_FN static bool apply(T a, T b) {
    return truth(a) != truth(b);
  }
};

struct LogicalNot : Row<1, kEverything, Rule::kBool> {
  static constexpr const char* name = "logical_not";
  static constexpr const char* doc = "Whether x is zero.";
  template <class T>
  CUOP_FN static bool apply(T x) {
    return !truth(x);
  }
};

struct IsNan : Row<1, kEverything, Rule::kBool> {
  static constexpr const char* name = "isnan";
  static constexpr const char* doc = "Whether x, or a part of it, is NaN.";
  template <class T>
  CUOP_FN static bool apply(T x) {
    return x != x;
  }
};

struct IsInf : Row<1, kEverything, Rule::kBool> {
  static constexpr const char* name = "isinf";
  static constexpr const char* doc = "Whether x, or a part of it, is infinite.";
  template <class T>
  CUOP_FN static bool apply(T x) {
    if constexpr (is_complex_type<T>) {
      return math::is_inf(x.real()) | math::is_inf(x.imag());
    } else if constexpr (is_float_type<T>) {
      return math::is_inf(x);
    } else {
      return false;
    }
  }
};

struct IsFinite : Row<1, kEverything, Rule::kBool> {
  static constexpr const char* name = "isfinite";
  static constexpr const char* doc = "Whether x is neither infinite nor NaN.";
  template <class T>
  CUOP_FN static bool apply(T x) {
    if constexpr (is_complex_type<T>) {
      return apply(x.real()) & apply(x.imag());
    } else if constexpr (is_float_type<T>) {
      return math::abs(x) < T(math::infinity);
    } else {
      return true;
    }
  }
};

struct SignBit : Row<1, kReals, Rule::kBool> {
  static constexpr const char* name = "signbit";
  static constexpr const char* doc =
      "Whether the sign bit is set, also of -0 and NaN; of integers, whether x < 0.";
  template <class T>
  CUOP_FN static bool apply(T x) {
    if constexpr (is_float_type<T>) {
      return math::signbit(x);
    } else if constexpr (is_signed_type<T>) {
      return x < 0;
    } else {
      return false;
    }
  }
};

struct BitwiseAnd : Row<2, kBools | kIntegers, Rule::kSame> {
  static constexpr const char* name = "bitwise_and";
  static constexpr const char* doc = "Bits set in both.";
  template <class T>
  CUOP_FN static T apply(T a, T b) {
    return static_cast<T>(a & b);
  }
};

struct BitwiseOr : Row<2, kBools | kIntegers, Rule::kSame> {
  static constexpr const char* name = "bitwise_or";
  static constexpr const char* doc = "Bits set in one of the two or both.";
  template <class T>
  CUOP_FN static T apply(T a, T b) {
    return static_cast<T>(a | b);
  }
};

struct BitwiseXor : Row<2, kBools | kIntegers, Rule::kSame> {
  static constexpr const char* name = "bitwise_xor";
  static constexpr const char* doc = "Bits set in exactly one of the two.";
  template <class T>
  CUOP_FN static T apply(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};

struct BitwiseInvert : Row<1, kBools | kIntegers, Rule::kSame> {
  static constexpr const char* name = "bitwise_invert";
  static constexpr const char* doc = "All bits flipped; for bool, not x.";
  template <class T>
  CUOP_FN static T apply(T x) {
    if constexpr (is_bool_type<T>) {
      return !x;
    } else {
      return static_cast<T>(~x);
    }
  }
};

/// Whether a shift by this much keeps any bit.
template <class T>
CUOP_FN bool is_in_width(T count) {
  return static_cast<uint64_t>(count) < 8 * sizeof(T);
}

struct BitwiseLeftShift : Row<2, kIntegers, Rule::kSame> {
  static constexpr const char* name = "bitwise_left_shift";
  static constexpr const char* doc =
      "x1 shifted left by x2 bits; 0 when x2 is negative or too large.";
  template <class T>
  CUOP_FN static T apply(T a, T b) {
    const WrapType<T> count = is_in_width(b) ? wrap(b) : 0;
    return is_in_width(b) ? wrapped<T>(wrap(a) << count) : T(0);
  }
};

struct BitwiseRightShift : Row<2, kIntegers, Rule::kSame> {
  static constexpr const char* name = "bitwise_right_shift";
  static constexpr const char* doc =
      "x1 shifted right by x2 bits, keeping the sign; 0 or -1 when x2 is negative or too large.";
  template <class T>
  CUOP_FN static T apply(T a, T b) {
    constexpr int last = static_cast<int>(8 * sizeof(T)) - 1;
    const int count = is_in_width(b) ? static_cast<int>(b) : last;
    const T shifted = static_cast<T>(a >> count);
    return is_signed_type<T> || is_in_width(b) ? shifted : T(0);
  }
};

struct Maximum : Row<2, kOrdered, Rule::kSame> {
  static constexpr const char* name = "maximum";
  static constexpr const char* doc = "The larger of the two; NaN when one is NaN.";
  template <class T>
  CUOP_FN static T apply(T a, T b) {
    return (a >= b) | (a != a) ? a : b;
  }
};

struct Minimum : Row<2, kOrdered, Rule::kSame> {
  static constexpr const char* name = "minimum";
  static constexpr const char* doc = "The smaller of the two; NaN when one is NaN.";
  template <class T>
  CUOP_FN static T apply(T a, T b) {
    return (a <= b) | (a != a) ? a : b;
  }
};

struct Clip : Row<3, kOrdered, Rule::kSame> {
  static constexpr const char* name = "clip";
  static constexpr const char* doc = "x brought into [min, max]: minimum(maximum(x, min), max).";
  static constexpr const char* parameters[3] = {"x", "min", "max"};
  template <class T>
  CUOP_FN static T apply(T x, T lo, T hi) {
    const T raised = choose((x >= lo) | (x != x), x, lo);
    return choose((raised <= hi) | (raised != raised), raised, hi);
  }
};

struct Where : Row<3, kEverything, Rule::kSelect> {
  static constexpr const char* name = "where";
  static constexpr const char* doc = "x1 where the condition holds (is nonzero), x2 elsewhere.";
  static constexpr const char* parameters[3] = {"condition", "x1", "x2"};
  template <class T>
  CUOP_FN static T apply(uint8_t condition, T a, T b) {
    return choose(condition, a, b);
  }
};

struct Floor : Row<1, kReals, Rule::kSame> {
  static constexpr const char* name = "floor";
  static constexpr const char* doc = "Rounded towards minus infinity.";
  template <class T>
  CUOP_FN static T apply(T x) {
    if constexpr (is_float_type<T>) {
      return math::floor(x);
    } else {
      return x;
    }
  }
};

struct Ceil : Row<1, kReals, Rule::kSame> {
  static constexpr const char* name = "ceil";
  static constexpr const char* doc = "Rounded towards plus infinity.";
  template <class T>
  CUOP_FN static T apply(T x) {
    if constexpr (is_float_type<T>) {
      return math::ceil(x);
    } else {
      return x;
    }
  }
};

struct Trunc : Row<1, kReals, Rule::kSame> {
  static constexpr const char* name = "trunc";
  static constexpr const char* doc = "Rounded towards 0.";
  template <class T>
  CUOP_FN static T apply(T x) {
    if constexpr (is_float_type<T>) {
      return math::trunc(x);
    } else {
      return x;
    }
  }
};

struct Round : Row<1, kNumbers, Rule::kSame> {
  static constexpr const char* name = "round";
  static constexpr const char* doc = "Rounded to the nearest whole number, halves to the even one.";
  template <class T>
  CUOP_FN static T apply(T x) {
    if constexpr (is_float_type<T>) {
      return math::rint(x);
    } else if constexpr (is_complex_type<T>) {
      return {math::rint(x.real()), math::rint(x.imag())};
    } else {
      return x;
    }
  }
};

struct CopySign : Row<2, kFloats, Rule::kInexact> {
  static constexpr const char* name = "copysign";
  static constexpr const char* doc = "The size of x1 with the sign of x2.";
  template <class T>
  CUOP_FN static T apply(T a, T b) {
    return math::copysign(a, b);
  }
};

struct NextAfter : Row<2, kFloats | kNo16Bit, Rule::kInexact, 8> {
  static constexpr const char* name = "nextafter";
  static constexpr const char* doc = "The next value of x1's dtype in the direction of x2.";
  template <class T>
  CUOP_FN static T apply(T a, T b) {
    return math::nextafter(a, b);
  }
};

}  // namespace cuop::jit::fn
