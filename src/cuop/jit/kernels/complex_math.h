// Functions of a complex variable. The host takes the standard library's; under NVRTC, which has
// none, they are made of real functions here, complex64 in double precision.
//
// Branch cuts as in C99, Annex G; inverse functions: W. Kahan, "Branch cuts for complex elementary
// functions" (1987). Errors: some units in the last place of the larger part. Not in real kernels.
#pragma once
#ifndef CUOP_REAL_ONLY
#include "cuop/jit/kernels/elementary.h"

namespace cuop::jit::complex_math {

using Z = Complex<double>;

constexpr double kPi = 3.14159265358979323846;
constexpr double kLn2 = 0.693147180559945309417;
/// Beyond it exp is split in two factors, which the product with a sine may bring back in range.
constexpr double kLargeExponent = 700.0;

CUOP_FN bool is_finite(double x) { return x - x == 0.0; }
/// i z and -i z, by which the circular functions are the hyperbolic ones.
CUOP_FN Z turned(Z z) { return {-z.imag(), z.real()}; }
CUOP_FN Z turned_back(Z z) { return {z.imag(), -z.real()}; }

CUOP_FN Z exp(Z z) {
  const double x = z.real(), y = z.imag();
  if (y == 0.0) return {math::exp(x), y};
  if (!is_finite(y)) {
    if (x == -math::infinity) return {0.0, 0.0};
    return {x == math::infinity ? x : math::nan, math::nan};
  }
  if (x == -math::infinity) return {math::copysign(0.0, ::cos(y)), math::copysign(0.0, ::sin(y))};
  const double part = math::abs(x) > kLargeExponent ? x / 2 : x;
  const double size = math::exp(part), rest = math::exp(x - part);
  return {size * ::cos(y) * rest, size * ::sin(y) * rest};
}

CUOP_FN Z log(Z z) {
  const double x = math::abs(z.real()), y = math::abs(z.imag());
  const double large = x > y ? x : y, small = x > y ? y : x;
  const double angle = math::atan2(z.imag(), z.real());
  // Near the unit circle the logarithm of the modulus would cancel.
  if (large > 0.5 && large < 2.0 && large * large + small * small < 3.0) {
    return {math::log1p((large - 1) * (large + 1) + small * small) / 2, angle};
  }
  if (large > 0x1p1020 && large < math::infinity) {
    return {math::log(math::hypot(x / 4, y / 4)) + 2 * kLn2, angle};
  }
  return {math::log(math::hypot(x, y)), angle};
}

CUOP_FN Z sqrt(Z z) {
  const double x = z.real(), y = z.imag();
  if (x == 0.0 && y == 0.0) return {0.0, y};
  if (math::is_inf(y)) return {math::infinity, y};
  if (math::is_inf(x)) {
    const double other = math::is_nan(y) ? y : math::copysign(0.0, y);
    return x > 0 ? Z{x, other} : Z{math::abs(other), math::copysign(math::infinity, y)};
  }
  // Scaled by a power of four so that neither the modulus overflows nor its half loses bits.
  const double largest = math::abs(x) > math::abs(y) ? math::abs(x) : math::abs(y);
  const double scale = largest > 0x1p1020 ? 0x1p-2 : largest < 0x1p-960 ? 0x1p60 : 1.0;
  const double root_scale = largest > 0x1p1020 ? 0x1p1 : largest < 0x1p-960 ? 0x1p-30 : 1.0;
  const double a = x * scale, b = y * scale;
  const double t = math::sqrt((math::abs(a) + math::hypot(a, b)) / 2);
  const double other = math::abs(b) / (2 * t);
  const double re = a >= 0 ? t : other, im = a >= 0 ? other : t;
  return {re * root_scale, math::copysign(im * root_scale, y)};
}

/// cosh and sinh of x times the parts of `circle`, without overflow on the way.
CUOP_FN Z hyperbolic(double even, double odd, double x, Z circle) {
  if (math::abs(x) <= kLargeExponent) return {even * circle.real(), odd * circle.imag()};
  const double half = math::exp(math::abs(x) / 2);
  const double sign = math::copysign(0.5, x);
  const double first = even < 0 ? sign : 0.5, second = odd < 0 ? sign : 0.5;
  return {half * first * circle.real() * half, half * second * circle.imag() * half};
}

CUOP_FN Z sinh(Z z) {
  const double x = z.real(), y = z.imag();
  if (y == 0.0) return {math::sinh(x), y};
  if (!is_finite(y)) {
    if (x == 0.0) return {x, math::nan};
    return {math::is_inf(x) ? x : math::nan, math::nan};
  }
  return hyperbolic(math::sinh(x), math::cosh(x), x, {::cos(y), ::sin(y)});
}

CUOP_FN Z cosh(Z z) {
  const double x = z.real(), y = z.imag();
  if (y == 0.0) return {math::cosh(x), math::copysign(1.0, x) * y};
  if (!is_finite(y)) {
    if (x == 0.0) return {math::nan, x};
    return {math::is_inf(x) ? math::infinity : math::nan, math::nan};
  }
  return hyperbolic(math::cosh(x), math::sinh(x), x, {::cos(y), ::sin(y)});
}

CUOP_FN Z tanh(Z z) {
  const double x = z.real(), y = z.imag();
  if (y == 0.0) return {math::tanh(x), y};
  if (math::is_inf(x)) {
    const double sign = is_finite(y) ? ::sin(y) * ::cos(y) : 0.0;
    return {math::copysign(1.0, x), math::copysign(0.0, sign)};
  }
  if (math::abs(x) > 22) {
    const double decay = math::exp(-2 * math::abs(x));
    return {math::copysign(1.0, x), 4 * ::sin(y) * ::cos(y) * decay};
  }
  const double t = math::tan(y), beta = 1 + t * t, s = math::sinh(x);
  const double rho = math::sqrt(1 + s * s);
  const double divisor = 1 + beta * s * s;
  return {beta * rho * s / divisor, t / divisor};
}

CUOP_FN Z sin(Z z) { return turned_back(sinh(turned(z))); }
CUOP_FN Z cos(Z z) { return cosh(turned(z)); }
CUOP_FN Z tan(Z z) { return turned_back(tanh(turned(z))); }

CUOP_FN Z asin(Z z) {
  const Z below = sqrt({1 - z.real(), -z.imag()}), above = sqrt({1 + z.real(), z.imag()});
  return {math::atan2(z.real(), below.real() * above.real() - below.imag() * above.imag()),
          math::asinh(below.real() * above.imag() - below.imag() * above.real())};
}

CUOP_FN Z acos(Z z) {
  const Z below = sqrt({1 - z.real(), -z.imag()}), above = sqrt({1 + z.real(), z.imag()});
  return {2 * math::atan2(below.real(), above.real()),
          math::asinh(above.real() * below.imag() - above.imag() * below.real())};
}

CUOP_FN Z acosh(Z z) {
  const Z below = sqrt({z.real() - 1, z.imag()}), above = sqrt({z.real() + 1, z.imag()});
  return {math::asinh(below.real() * above.real() + below.imag() * above.imag()),
          2 * math::atan2(below.imag(), above.real())};
}

CUOP_FN Z atanh(Z z) {
  const double x = z.real(), y = z.imag();
  const double a = math::abs(x), b = math::abs(y);
  if (a > 0x1p500 || b > 0x1p500) {
    // 1/z to the last bit, and a right angle.
    const double size = math::hypot(a / 4, b / 4);
    const double re = math::is_inf(size) ? 0.0 : a / 4 / size / size / 4;
    return {math::copysign(re, x), math::copysign(kPi / 2, y)};
  }
  const double rest = 1 - a;
  const double re = math::log1p(4 * a / (rest * rest + b * b)) / 4;
  // |z|^2 - 1 by its factor where the first part is near 1.
  const double im = math::atan2(2 * b, rest * (1 + a) - b * b) / 2;
  return {math::copysign(re, x), math::copysign(im, y)};
}

CUOP_FN Z asinh(Z z) { return turned_back(asin(turned(z))); }
CUOP_FN Z atan(Z z) { return turned_back(atanh(turned(z))); }

CUOP_FN Z log10(Z z) {
  const Z natural = log(z);
  return {natural.real() * 0.434294481903251827651, natural.imag() * 0.434294481903251827651};
}

CUOP_FN Z pow(Z base, Z exponent) {
  const Z l = log(base);
  return exp({exponent.real() * l.real() - exponent.imag() * l.imag(),
              exponent.real() * l.imag() + exponent.imag() * l.real()});
}

}  // namespace cuop::jit::complex_math

namespace cuop::jit::math {

#ifdef __CUDACC_RTC__
namespace complex_functions = complex_math;
template <class R>
CUOP_FN Complex<double> widened(Complex<R> z) {
  return Complex<double>(z.real(), z.imag());
}
#else
namespace complex_functions = std;
template <class R>
CUOP_FN Complex<R> widened(Complex<R> z) {
  return z;
}
#endif

template <class R>
CUOP_FN Complex<R> exp(Complex<R> z) {
  return Complex<R>(complex_functions::exp(widened(z)));
}
template <class R>
CUOP_FN Complex<R> log(Complex<R> z) {
  return Complex<R>(complex_functions::log(widened(z)));
}
template <class R>
CUOP_FN Complex<R> log10(Complex<R> z) {
  return Complex<R>(complex_functions::log10(widened(z)));
}
template <class R>
CUOP_FN Complex<R> sqrt(Complex<R> z) {
  return Complex<R>(complex_functions::sqrt(widened(z)));
}
template <class R>
CUOP_FN Complex<R> sin(Complex<R> z) {
  return Complex<R>(complex_functions::sin(widened(z)));
}
template <class R>
CUOP_FN Complex<R> cos(Complex<R> z) {
  return Complex<R>(complex_functions::cos(widened(z)));
}
template <class R>
CUOP_FN Complex<R> tan(Complex<R> z) {
  return Complex<R>(complex_functions::tan(widened(z)));
}
template <class R>
CUOP_FN Complex<R> asin(Complex<R> z) {
  return Complex<R>(complex_functions::asin(widened(z)));
}
template <class R>
CUOP_FN Complex<R> acos(Complex<R> z) {
  return Complex<R>(complex_functions::acos(widened(z)));
}
template <class R>
CUOP_FN Complex<R> atan(Complex<R> z) {
  return Complex<R>(complex_functions::atan(widened(z)));
}
template <class R>
CUOP_FN Complex<R> sinh(Complex<R> z) {
  return Complex<R>(complex_functions::sinh(widened(z)));
}
template <class R>
CUOP_FN Complex<R> cosh(Complex<R> z) {
  return Complex<R>(complex_functions::cosh(widened(z)));
}
template <class R>
CUOP_FN Complex<R> tanh(Complex<R> z) {
  return Complex<R>(complex_functions::tanh(widened(z)));
}
template <class R>
CUOP_FN Complex<R> asinh(Complex<R> z) {
  return Complex<R>(complex_functions::asinh(widened(z)));
}
template <class R>
CUOP_FN Complex<R> acosh(Complex<R> z) {
  return Complex<R>(complex_functions::acosh(widened(z)));
}
template <class R>
CUOP_FN Complex<R> atanh(Complex<R> z) {
  return Complex<R>(complex_functions::atanh(widened(z)));
}
template <class R>
CUOP_FN Complex<R> pow(Complex<R> base, Complex<R> exponent) {
  return Complex<R>(complex_functions::pow(widened(base), widened(exponent)));
}

}  // namespace cuop::jit::math
#endif
