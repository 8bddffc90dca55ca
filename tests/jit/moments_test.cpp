// Moments as a GPU's threads make them, one number after the other, beside exact arithmetic.
#include "cuop/jit/kernels/moments.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>
#include <random>
#include <vector>

namespace cuop {
namespace {

__extension__ typedef __float128 Quad;

Quad about_mean(const std::vector<double>& numbers) {
  Quad mean = 0, squares = 0;
  for (const double x : numbers) mean += Quad(x);
  mean /= static_cast<Quad>(numbers.size());
  for (const double x : numbers) squares += (Quad(x) - mean) * (Quad(x) - mean);
  return squares;
}

/// Dealt to `threads` that take `at_a_time` between looks at their centers, and merged as a tree.
Moments dealt(const std::vector<double>& numbers, size_t threads, size_t at_a_time) {
  std::vector<Moments> states(threads, Moments{0.0, 0.0, 0.0, 0});
  for (size_t i = 0; i < numbers.size(); ++i) {
    Moments& state = states[i / at_a_time % threads];
    if (i % at_a_time == 0) state.recenter_if_due();
    state.take(numbers[i], true);
  }
  for (size_t step = 1; step < threads; step *= 2) {
    for (size_t i = 0; i + step < threads; i += 2 * step) states[i].merge(states[i + step]);
  }
  return states[0];
}

void expect_digits(const std::vector<double>& numbers, const char* what) {
  const Quad exact = about_mean(numbers);
  for (const size_t threads : {1, 3, 32, 256}) {
    // Of a thread's own additions, one after the other, and some of each merging.
    const double roundings = 64 + static_cast<double>(numbers.size() / threads);
    for (const size_t at_a_time : {1, 8, 16}) {
      const double got = dealt(numbers, threads, at_a_time).about_mean();
      const auto error = static_cast<double>(Quad(got) - exact);
      EXPECT_LE(std::abs(error), roundings * 0x1p-53 * static_cast<double>(exact))
          << what << ", " << threads << " threads, " << at_a_time << " at a time";
    }
  }
}

TEST(Moments, KeepTheirDigitsWhateverTheNumbersHaveInCommon) {
  std::mt19937_64 random(18);
  std::normal_distribution<double> normal;
  for (const double offset : {0.0, 1e8, -1e8, 1e15}) {
    std::vector<double> numbers(20011);
    for (double& x : numbers) x = normal(random) + offset;
    expect_digits(numbers, "normal");
    std::vector<double> rising = numbers;
    for (size_t i = 0; i < rising.size(); ++i) rising[i] = offset + static_cast<double>(i) / 8;
    expect_digits(rising, "rising");
    for (size_t i = 0; i < rising.size(); ++i) rising[i] = i % 2 == 0 ? offset : -offset - 1;
    expect_digits(rising, "alternating");
    numbers[0] = offset + 1e9;  // the worst center there is
    expect_digits(numbers, "an outlier first");
  }
}

TEST(Moments, OfWhatIsTheSameAreExactlyZero) {
  for (const double value : {0.1, 1e8 + 0.1, -3e300, 5e-324}) {
    EXPECT_EQ(dealt(std::vector<double>(10007, value), 32, 16).about_mean(), 0.0) << value;
  }
  EXPECT_EQ((Moments{0.0, 0.0, 0.0, 0}).about_mean(), 0.0);
  EXPECT_EQ(dealt({7.5}, 3, 16).about_mean(), 0.0);
}

TEST(Moments, OfInfinitiesAndNaNsAreNaNsAndOfLargeNumbersInfinite) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const size_t place : {0, 5, 99}) {
    for (const double odd : {kInfinity, -kInfinity, std::nan("")}) {
      std::vector<double> numbers(100, 2.0);
      numbers[place] = odd;
      EXPECT_TRUE(std::isnan(dealt(numbers, 3, 16).about_mean())) << odd << " at " << place;
    }
  }
  std::vector<double> large(100);
  for (size_t i = 0; i < large.size(); ++i) large[i] = i % 2 == 0 ? 1e200 : -1e200;
  EXPECT_EQ(dealt(large, 3, 16).about_mean(), kInfinity);
}

TEST(Moments, OfComplexNumbersAddUpThoseOfTheirParts) {
  using C = std::complex<double>;
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  std::vector<double> real(5000), imaginary(5000);
  MomentsOf<C> state{0.0, 0.0, 0.0, 0}, other = state;
  for (size_t i = 0; i < real.size(); ++i) {
    real[i] = normal(random) + 1e8;
    imaginary[i] = 3 * normal(random);
    MomentsOf<C>& half = i < 1234 ? state : other;
    half.recenter_if_due();
    half.take(C(real[i], imaginary[i]), true);
  }
  state.merge(other);
  const auto expected = static_cast<double>(about_mean(real) + about_mean(imaginary));
  EXPECT_NEAR(state.about_mean(), expected, 1e-14 * expected);
}

}  // namespace
}  // namespace cuop
