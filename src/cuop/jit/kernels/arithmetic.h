// Functors of arithmetic. Integers wrap around; dividing an integer by zero gives 0, as in NumPy.
#pragma once

#include "cuop/jit/kernels/complex_math.h"
#include "cuop/jit/kernels/prelude.h"
#include "cuop/jit/kernels/row.h"

namespace cuop::jit::fn {

struct Add : Row<2, kEverything, Rule::kSame> {
  static constexpr const char* name = "add";
  static constexpr const char* doc = "Sum x1 + x2; for bool, x1 or x2.";
  template <class T>
  CUOP_FN static T apply(T a, T b) {
    if constexpr (is_bool_type<T>) {
      return a || b;
    } else if constexpr (is_integer_type<T>) {
      return wrapped<T>(wrap(a) + wrap(b));
    } else {
      return a + b;
    }
  }
};

struct Subtract : Row<2, kNumbers, Rule::kSame> {
  static constexpr const char* name = "subtract";
  static constexpr const char* doc = "Difference x1 - x2.";
  template <class T>
  CUOP_FN static T apply(T a, T b) {
    if constexpr (is_integer_type<T>) {
      return wrapped<T>(wrap(a) - wrap(b));
    } else {
      return a - b;
    }
  }
};

struct Multiply : Row<2, kEverything, Rule::kSame> {
  static constexpr const char* name = "multiply";
  static constexpr const char* doc = "Product x1 * x2; for bool, x1 and x2.";
  template <class T>
  CUOP_FN static T apply(T a, T b) {
    if constexpr (is_bool_type<T>) {
      return a && b;
    } else if constexpr (is_integer_type<T>) {
      return wrapped<T>(wrap(a) * wrap(b));
    } else if constexpr (is_complex_type<T>) {
      return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
    } else {
      return a * b;
    }
  }
};

struct Divide : Row<2, kFloats | kComplexes, Rule::kInexact> {
  static constexpr const char* name = "divide";
  static constexpr const char* doc = "True quotient x1 / x2; integers give float64.";
  template <class T>
  CUOP_FN static T apply(T a, T b) {
    if constexpr (is_complex_type<T>) {
      // Smith's algorithm (R. L. Smith, 1962): no intermediate overflows where the result does not.
      using R = RealType<T>;
      const R c = b.real(), d = b.imag();
      if (math::abs(c) >= math::abs(d)) {
        if (c == 0 && d == 0) return {a.real() / math::abs(c), a.imag() / math::abs(c)};
        const R ratio = d / c, scale = 1 / (c + d * ratio);
        return {(a.real() + a.imag() * ratio) * scale, (a.imag() - a.real() * ratio) * scale};
      }
      const R ratio = c / d, scale = 1 / (c * ratio + d);
      return {(a.real() * ratio + a.imag()) * scale, (a.imag() * ratio - a.real()) * scale};
    } else {
      return a / b;
    }
  }
};

/// fmod where one division decides it, which a loop can do in vectors; `is_unsure` is set where the
/// quotient is too large for that or an argument is not finite, and then the result means nothing.
CUOP_FN float attempt_fmod(float a, float b, unsigned& is_unsure) {
  const double size = math::abs(a), divisor = math::abs(b), quotient = size / divisor;
  is_unsure |= !(quotient < 0x1p28) | !(divisor < math::infinity);
  double rest = size - math::trunc(quotient) * divisor;  // exact: 28 + 24 bits
  rest += rest < 0 ? divisor : 0;
  rest -= rest >= divisor ? divisor : 0;
  return math::copysign(static_cast<float>(rest), a);
}
CUOP_FN double attempt_fmod(double a, double b, unsigned& is_unsure) {
  if constexpr (!math::has_fast_fma) {
    is_unsure = 1;
    return 0;
  } else {
    const double size = math::abs(a), divisor = math::abs(b), quotient = size / divisor;
    is_unsure |= !(quotient < 0x1p52) | !(divisor < math::infinity);
    double rest = math::fma(-math::trunc(quotient), divisor, size);  // exact, as it fits
    rest += rest < 0 ? divisor : 0;
    rest -= rest >= divisor ? divisor : 0;
    return math::copysign(rest, a);
  }
}

struct FloorDivide : Row<2, kReals, Rule::kSame, 16> {
  static constexpr const char* name = "floor_divide";
  static constexpr const char* doc =
      "Quotient x1 / x2 rounded towards minus infinity; an integer divided by 0 is 0.";
  template <class T>
  CUOP_FN static T apply(T a, T b) {
    if constexpr (is_float_type<T>) {
      if (b == 0) return a / b;
      const T rest = math::fmod(a, b);
      return math::is_nan(rest) ? rest : from_rest(a, b, rest);
    } else if constexpr (is_signed_type<T>) {
      if (b == 0) return 0;
      if (b == -1) return wrapped<T>(wrap(T(0)) - wrap(a));  // the lowest value has no opposite
      const T quotient = static_cast<T>(a / b);
      const bool is_inexact = static_cast<T>(quotient * b) != a;
      return static_cast<T>(quotient - (is_inexact && (a < 0) != (b < 0) ? 1 : 0));
    } else {
      return b == 0 ? T(0) : static_cast<T>(a / b);
    }
  }
  template <class T>
  CUOP_FN static T attempt(T a, T b, unsigned& is_unsure) {
    return from_rest(a, b, attempt_fmod(a, b, is_unsure));
  }

 private:
  template <class T>
  CUOP_FN static T from_rest(T a, T b, T rest) {
    // (a - rest) / b is a whole number up to rounding; a half left over belongs to the floor.
    const T below = choose((rest != 0) & ((b < 0) != (rest < 0)), T(1), T(0));
    const T quotient = (a - rest) / b - below;
    const T floor = math::floor(quotient);
    const T whole = floor + choose(quotient - floor > T(0.5), T(1), T(0));
    return choose(quotient == 0, math::copysign(T(0), a / b), whole);
  }
};

struct Remainder : Row<2, kReals, Rule::kSame, 16> {
  static constexpr const char* name = "remainder";
  static constexpr const char* doc =
      "Remainder of floor_divide, with the sign of x2; an integer modulo 0 is 0.";
  template <class T>
  CUOP_FN static T apply(T a, T b) {
    if constexpr (is_float_type<T>) {
      return with_sign_of(b, math::fmod(a, b));
    } else if constexpr (is_signed_type<T>) {
      if (b == 0 || b == -1) return 0;
      const T rest = static_cast<T>(a % b);
      return rest != 0 && (rest < 0) != (b < 0) ? static_cast<T>(rest + b) : rest;
    } else {
      return b == 0 ? T(0) : static_cast<T>(a % b);
    }
  }
  template <class T>
  CUOP_FN static T attempt(T a, T b, unsigned& is_unsure) {
    return with_sign_of(b, attempt_fmod(a, b, is_unsure));
  }

 private:
  /// The exact remainder of fmod brought to the sign of b; NaN stays NaN.
  template <class T>
  CUOP_FN static T with_sign_of(T b, T rest) {
    const T moved = rest + choose((b < 0) != (rest < 0), b, T(0));
    return choose(rest == 0, math::copysign(T(0), b), moved);
  }
};

struct Power : Row<2, kNumbers, Rule::kSame, 16> {
  static constexpr const char* name = "pow";
  static constexpr const char* doc =
      "x1 raised to x2. An integer to a negative integer is the truncated quotient: 0, or 1 and -1 "
      "for those bases.";
  template <class T>
  CUOP_FN static T apply(T a, T b) {
    if constexpr (is_integer_type<T>) {
      if constexpr (is_signed_type<T>) {
        if (b < 0) {
          if (a == 1) return 1;
          return a == -1 ? static_cast<T>((b & 1) != 0 ? -1 : 1) : T(0);
        }
      }
      WrapType<T> result = 1, base = wrap(a);
      for (WrapType<T> left = wrap(b); left != 0; left >>= 1) {
        if ((left & 1) != 0) result *= base;
        base *= base;
      }
      return wrapped<T>(result);
    } else if constexpr (is_complex_type<T>) {
      if (b == T(0)) return T(1);
      if (b == T(1)) return a;
      if (b == T(2)) return Multiply::apply(a, a);
      if (a == T(0)) {
        const RealType<T> nan = RealType<T>(math::nan);
        return b.real() > 0 ? T(0) : T(nan, nan);
      }
      return math::pow(a, b);
    } else {
      return math::pow(a, b);
    }
  }
};

struct Negative : Row<1, kNumbers, Rule::kSame> {
  static constexpr const char* name = "negative";
  static constexpr const char* doc = "-x.";
  template <class T>
  CUOP_FN static T apply(T x) {
    if constexpr (is_integer_type<T>) {
      return wrapped<T>(wrap(T(0)) - wrap(x));
    } else {
      return -x;
    }
  }
};

struct Positive : Row<1, kNumbers, Rule::kSame> {
  static constexpr const char* name = "positive";
  static constexpr const char* doc = "A copy of x.";
  template <class T>
  CUOP_FN static T apply(T x) {
    return x;
  }
};

struct Abs : Row<1, kEverything, Rule::kReal> {
  static constexpr const char* name = "abs";
  static constexpr const char* doc = "Absolute value; the modulus of a complex number.";
  template <class T>
  CUOP_FN static RealType<T> apply(T x) {
    if constexpr (is_complex_type<T>) {
      return math::hypot(x.real(), x.imag());
    } else if constexpr (is_float_type<T>) {
      return math::abs(x);
    } else if constexpr (is_integer_type<T>) {
      return is_signed_type<T> && x < T(0) ? Negative::apply(x) : x;
    } else {
      return x;
    }
  }
};

struct Sign : Row<1, kNumbers, Rule::kSame> {
  static constexpr const char* name = "sign";
  static constexpr const char* doc = "-1, 0 or 1; x / abs(x) of a complex number; NaN of NaN.";
  template <class T>
  CUOP_FN static T apply(T x) {
    if constexpr (is_complex_type<T>) {
      const RealType<T> size = Abs::apply(x);
      return size == 0 ? T(0) : T(x.real() / size, x.imag() / size);
    } else if constexpr (is_float_type<T>) {
      return math::is_nan(x) ? x : static_cast<T>((x > 0) - (x < 0));
    } else {
      return static_cast<T>((x > T(0)) - (x < T(0)));
    }
  }
};

struct Square : Row<1, kEverything, Rule::kSame> {
  static constexpr const char* name = "square";
  static constexpr const char* doc = "x * x.";
  static constexpr Ulps ulps{0.5, 0.5};
  template <class T>
  CUOP_FN static T apply(T x) {
    return Multiply::apply(x, x);
  }
};

struct Reciprocal : Row<1, kFloats | kComplexes, Rule::kInexact> {
  static constexpr const char* name = "reciprocal";
  static constexpr const char* doc = "1 / x; integers give float64.";
  static constexpr Ulps ulps{0.5, 0.5};
  template <class T>
  CUOP_FN static T apply(T x) {
    return Divide::apply(T(1), x);
  }
};

struct Real : Row<1, kEverything, Rule::kReal> {
  static constexpr const char* name = "real";
  static constexpr const char* doc = "Real part; x itself when x is real.";
  template <class T>
  CUOP_FN static RealType<T> apply(T x) {
    if constexpr (is_complex_type<T>) {
      return x.real();
    } else {
      return x;
    }
  }
};

struct Imag : Row<1, kEverything, Rule::kReal> {
  static constexpr const char* name = "imag";
  static constexpr const char* doc = "Imaginary part; zeros when x is real.";
  template <class T>
  CUOP_FN static RealType<T> apply(T x) {
    if constexpr (is_complex_type<T>) {
      return x.imag();
    } else {
      return T(0);
    }
  }
};

struct Conj : Row<1, kEverything, Rule::kSame> {
  static constexpr const char* name = "conj";
  static constexpr const char* doc = "Complex conjugate; x itself when x is real.";
  template <class T>
  CUOP_FN static T apply(T x) {
    if constexpr (is_complex_type<T>) {
      return {x.real(), -x.imag()};
    } else {
      return x;
    }
  }
};

}  // namespace cuop::jit::fn
