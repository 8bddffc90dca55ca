// The functions of one real argument in 113 binary digits, and the distance of an answer from them.
#pragma once

#include <quadmath.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <random>
#include <string_view>
#include <vector>

namespace cuop::test {

__extension__ using Quad = __float128;

struct TrueFunction {
  std::string_view name;
  Quad (*of)(Quad);
  double low, high;  ///< where most arguments are drawn from
  int slope;         ///< 1 or -1 of a monotone function, else 0
};

inline Quad true_sigmoid(Quad x) { return 1 / (1 + expq(-x)); }
inline Quad true_silu(Quad x) { return isinfq(x) && x < 0 ? -Quad(0) : x / (1 + expq(-x)); }
inline Quad true_gelu(Quad x) {
  return isinfq(x) && x < 0 ? -Quad(0) : x / 2 * erfcq(-x / sqrtq(Quad(2)));
}
inline Quad true_gelu_tanh(Quad x) {
  if (isinfq(x)) return x < 0 ? -Quad(0) : x;
  const Quad pi = 4 * atanq(Quad(1)), cubic = Quad(44715) / 1000000;
  return x / (1 + expq(-2 * sqrtq(2 / pi) * (x + cubic * x * x * x)));
}

inline constexpr TrueFunction kTrueFunctions[] = {
    {"square", [](Quad x) { return x * x; }, -10, 10, 0},
    {"reciprocal", [](Quad x) { return 1 / x; }, -10, 10, 0},
    {"sqrt", sqrtq, 0, 100, 1},
    {"rsqrt", [](Quad x) { return 1 / sqrtq(x); }, 0.01, 100, -1},
    {"cbrt", cbrtq, -10, 10, 1},
    {"exp", expq, -10, 10, 1},
    {"exp2", exp2q, -10, 10, 1},
    {"expm1", expm1q, -10, 10, 1},
    {"log", logq, 0.01, 100, 1},
    {"log1p", log1pq, -0.5, 100, 1},
    {"log2", log2q, 0.01, 100, 1},
    {"log10", log10q, 0.01, 100, 1},
    {"erf", erfq, -3, 3, 1},
    {"erfc", erfcq, -3, 10, -1},
    {"sin", sinq, -10, 10, 0},
    {"cos", cosq, -10, 10, 0},
    {"tan", tanq, -10, 10, 0},
    {"asin", asinq, -1, 1, 1},
    {"acos", acosq, -1, 1, -1},
    {"atan", atanq, -10, 10, 1},
    {"sinh", sinhq, -10, 10, 1},
    {"cosh", coshq, -10, 10, 0},
    {"tanh", tanhq, -3, 3, 1},
    {"asinh", asinhq, -10, 10, 1},
    {"acosh", acoshq, 1, 100, 1},
    {"atanh", atanhq, -1, 1, 1},
    {"sigmoid", true_sigmoid, -10, 10, 1},
    {"silu", true_silu, -10, 10, 0},
    {"softplus", [](Quad x) { return (x > 0 ? x : Quad(0)) + log1pq(expq(-fabsq(x))); }, -10, 10,
     1},
    {"gelu", true_gelu, -5, 5, 0},
    {"gelu_tanh", true_gelu_tanh, -5, 5, 0},
};

/// The digits and exponents of a floating type, as std::numeric_limits counts them.
struct FloatFormat {
  int digits, min_exponent, max_exponent;
};
template <class T>
constexpr FloatFormat format_of{std::numeric_limits<T>::digits,
                                std::numeric_limits<T>::min_exponent,
                                std::numeric_limits<T>::max_exponent};
inline constexpr FloatFormat kHalfFormat{11, -13, 16}, kBFloat16Format{8, -125, 128};

/// Distance in units in the last place of `truth`; infinite where one alone is NaN, or where a zero
/// has the wrong sign. What rounds beyond the largest number counts as the power of two behind it.
inline double distance_in_ulps(Quad given, Quad truth, const FloatFormat& format) {
  constexpr double kWrong = std::numeric_limits<double>::infinity();
  if (isnanq(truth) || isnanq(given)) return isnanq(truth) && isnanq(given) ? 0 : kWrong;
  const Quad beyond = ldexpq(Quad(1), format.max_exponent);
  const auto bounded = [&](Quad x) { return fabsq(x) > beyond ? copysignq(beyond, x) : x; };
  const Quad mine = bounded(given), theirs = bounded(truth);
  if (mine == 0 && theirs == 0) return signbitq(mine) == signbitq(theirs) ? 0 : kWrong;
  int exponent = 0;
  frexpq(theirs, &exponent);
  exponent = std::clamp(exponent, format.min_exponent, format.max_exponent) - format.digits;
  return static_cast<double>(ldexpq(fabsq(mine - theirs), -exponent));
}

/// Bit patterns of all kinds, numbers of the usual size, of all sizes near 1 and towards overflow,
/// powers of two, multiples of pi/2 and what lies beside them.
template <class T>
std::vector<T> sample(const TrueFunction& f, int count) {
  std::mt19937_64 random(20);
  const auto uniform = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  std::vector<T> x;
  for (int exponent = -1080; exponent < 1024; exponent += 3) {
    const T power = std::ldexp(T(1), exponent);
    for (const T value : {power, std::nextafter(power, T(0)), T(3) * power}) {
      x.push_back(value);
      x.push_back(-value);
    }
  }
  for (double turns = 0.5; turns < 0x1p60; turns = std::ceil(turns * 1.3)) {
    const T value = static_cast<T>(turns * 3.14159265358979323846);
    for (const T each : {value, std::nextafter(value, T(0)), -value}) x.push_back(each);
  }
  for (const double whole : {27.0, 1e7, 8.0, 1000.0, -89.0, -104.0, -710.0, -745.0, 1e22}) {
    x.push_back(static_cast<T>(whole));
  }
  // The first one lies nearest to a multiple of pi/2 of all doubles.
  for (const double large : {6381956970095103 * 0x1p797, 0x1.0000000000001p20, 0x1p1023}) {
    x.push_back(static_cast<T>(large));
    x.push_back(-static_cast<T>(large));
  }
  for (const T edge : {std::numeric_limits<T>::infinity(), std::numeric_limits<T>::quiet_NaN(),
                       std::numeric_limits<T>::max()}) {
    x.push_back(edge);
    x.push_back(-edge);
  }
  for (int i = 0; i < count; ++i) {
    T bits;
    const uint64_t word = random();
    std::memcpy(&bits, &word, sizeof bits);
    x.push_back(bits);
    x.push_back(static_cast<T>(f.low + (f.high - f.low) * uniform()));
    const double size = std::exp2(-40 + 52 * uniform()) * (random() % 2 != 0 && f.low < 0 ? -1 : 1);
    x.push_back(static_cast<T>(size));
    x.push_back(static_cast<T>((uniform() - 0.5) * (sizeof(T) == 4 ? 240 : 1600)));
  }
  while (x.size() % 16 != 0) x.push_back(T(1));
  return x;
}

/// The largest distance of answers and where it is.
template <class T>
struct WorstAnswer {
  double ulps = 0;
  T x = 0, given = 0;
};
template <class T>
WorstAnswer<T> worst_answer(const TrueFunction& f, const std::vector<T>& x, const T* given) {
  WorstAnswer<T> worst;
  for (size_t i = 0; i < x.size(); ++i) {
    const double ulps = distance_in_ulps(given[i], f.of(Quad(x[i])), format_of<T>);
    if (ulps > worst.ulps) worst = {ulps, x[i], given[i]};
  }
  return worst;
}

/// One line of the table of largest errors.
inline void print_worst(const TrueFunction& f, const WorstAnswer<float>& single,
                        const WorstAnswer<double>& twice) {
  std::printf("%-10s float32 %.3f at %.9g, float64 %.3f at %.17g\n", f.name.data(), single.ulps,
              static_cast<double>(single.x), twice.ulps, twice.x);
}

}  // namespace cuop::test
