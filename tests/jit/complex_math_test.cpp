// The complex functions of the GPU's kernels, run on the host beside the standard library's.
#include "cuop/jit/kernels/complex_math.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace cuop::jit {
namespace {

using Z = std::complex<double>;

struct ComplexCase {
  const char* name;
  Z (*ours)(Z);
  Z (*standard)(const Z&);
  double ulps;  ///< of the larger part
};

const ComplexCase kCases[] = {
    {"exp", complex_math::exp, std::exp<double>, 4},
    {"log", complex_math::log, std::log<double>, 8},
    {"log10", complex_math::log10, std::log10<double>, 8},
    {"sqrt", complex_math::sqrt, std::sqrt<double>, 4},
    {"sin", complex_math::sin, std::sin<double>, 6},
    {"cos", complex_math::cos, std::cos<double>, 6},
    {"tan", complex_math::tan, std::tan<double>, 16},
    {"sinh", complex_math::sinh, std::sinh<double>, 6},
    {"cosh", complex_math::cosh, std::cosh<double>, 6},
    {"tanh", complex_math::tanh, std::tanh<double>, 16},
    {"asin", complex_math::asin, [](const Z& z) { return std::asin(z); }, 16},
    {"acos", complex_math::acos, [](const Z& z) { return std::acos(z); }, 16},
    {"atan", complex_math::atan, [](const Z& z) { return std::atan(z); }, 16},
    {"asinh", complex_math::asinh, [](const Z& z) { return std::asinh(z); }, 16},
    {"acosh", complex_math::acosh, [](const Z& z) { return std::acosh(z); }, 16},
    {"atanh", complex_math::atanh, [](const Z& z) { return std::atanh(z); }, 16},
};

class ComplexMath : public ::testing::TestWithParam<ComplexCase> {};

void expect_close(const ComplexCase& c, Z z) {
  const Z ours = c.ours(z), wanted = c.standard(z);
  const double scale = std::max(std::abs(wanted.real()), std::abs(wanted.imag()));
  for (const auto& [mine, theirs] :
       {std::pair{ours.real(), wanted.real()}, std::pair{ours.imag(), wanted.imag()}}) {
    if (std::isinf(theirs) || std::isnan(theirs)) {
      EXPECT_TRUE(mine == theirs || (std::isnan(mine) && std::isnan(theirs)))
          << c.name << z << " = " << ours << " instead of " << wanted;
    } else if (std::isfinite(scale)) {
      EXPECT_LE(std::abs(mine - theirs), c.ulps * 0x1p-52 * scale + 0x1p-1060)
          << c.name << z << " = " << ours << " instead of " << wanted;
    }
  }
}

TEST_P(ComplexMath, AgreesWithTheStandardLibrary) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  for (const double size : {1e-8, 1e-3, 0.5, 1.0, 3.0, 30.0}) {
    for (int i = 0; i < 400; ++i)
      expect_close(GetParam(), {size * normal(random), size * normal(random)});
  }
}

TEST_P(ComplexMath, HandlesAxesAndLargeNumbers) {
  for (const double a : {0.25, 1.0, 1.5, 2.0, 600.0}) {
    for (const double x : {a, -a}) {
      for (const double zero : {0.0, -0.0}) {
        expect_close(GetParam(), {x, zero});
        expect_close(GetParam(), {zero, x});
      }
    }
  }
  const std::string name = GetParam().name;
  if (name == "sin" || name == "cos" || name == "tan" || name == "tanh") return;  // of 1e200
  if (name == "exp" || name == "sinh" || name == "cosh") {
    for (const double x : {708.0, -708.0, 709.9, -709.9, 710.3}) expect_close(GetParam(), {x, 1.5});
    return;
  }
  for (const Z z : {Z(1e200, 1e200), Z(-1e200, 3e199), Z(1e-200, 2e-200), Z(1e300, -1e10)}) {
    expect_close(GetParam(), z);
  }
}

INSTANTIATE_TEST_SUITE_P(Functions, ComplexMath, ::testing::ValuesIn(kCases),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST(ComplexMathSpecial, RootsAndLogarithmsOfInfinities) {
  const double inf = math::infinity;
  for (const Z z : {Z(inf, 1), Z(-inf, 1), Z(1, inf), Z(-inf, -inf), Z(0, 0), Z(0, -0.0)}) {
    expect_close({"sqrt", complex_math::sqrt, std::sqrt<double>, 4}, z);
    expect_close({"log", complex_math::log, std::log<double>, 4}, z);
  }
  for (const Z z : {Z(inf, 0), Z(-inf, 0), Z(-inf, inf), Z(-inf, 1), Z(1, inf)}) {
    expect_close({"exp", complex_math::exp, std::exp<double>, 4}, z);
  }
  EXPECT_TRUE(std::signbit(complex_math::sqrt({-4.0, -0.0}).imag()));
}

TEST(ComplexMathSpecial, Powers) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  for (int i = 0; i < 300; ++i) {
    const Z base(normal(random), normal(random)), exponent(normal(random), normal(random));
    const Z ours = complex_math::pow(base, exponent), wanted = std::pow(base, exponent);
    EXPECT_LE(std::abs(ours - wanted), 32 * 0x1p-52 * std::abs(wanted)) << base << exponent;
  }
}

}  // namespace
}  // namespace cuop::jit
