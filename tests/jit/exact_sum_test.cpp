#include "cuop/jit/kernels/exact_sum.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "cuop/core/half.h"

namespace cuop {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kMax = std::numeric_limits<double>::max();
constexpr double kTiny = std::numeric_limits<double>::denorm_min();

double exact(std::initializer_list<double> values) {
  ExactSum sum;
  for (const double value : values) sum.add(value);
  return sum.round();
}

TEST(ExactSum, KeepsWhatAPlainSumLoses) {
  EXPECT_EQ(exact({1e100, 1.0, -1e100}), 1.0);
  EXPECT_EQ(exact({0.1, 0.2, -0.3}), 0x1p-55);  // the error of the decimal fractions themselves
  EXPECT_EQ(exact({kMax, kMax, -kMax, -kTiny}), kMax);
  EXPECT_EQ(exact({kTiny, -kMax, kMax}), kTiny);
  EXPECT_EQ(exact({}), 0.0);
}

TEST(ExactSum, RoundsToNearestEven) {
  EXPECT_EQ(exact({1.0, 0x1p-53}), 1.0);
  EXPECT_EQ(exact({1.0, 0x1p-53, kTiny}), 1.0 + 0x1p-52);
  EXPECT_EQ(exact({1.0, 0x1p-52, 0x1p-53}), 1.0 + 0x1p-51);
  EXPECT_EQ(exact({-1.0, -0x1p-53, -kTiny}), -1.0 - 0x1p-52);
}

TEST(ExactSum, OverflowsOnlyWhenTheSumDoes) {
  EXPECT_EQ(exact({kMax, 0x1p969}), kMax);  // less than half a unit in the last place
  EXPECT_EQ(exact({kMax, 0x1p970}), kInf);
  EXPECT_EQ(exact({-kMax, -kMax}), -kInf);
}

TEST(ExactSum, TreatsInfinityAndNaNAsIeeeAdditionDoes) {
  EXPECT_EQ(exact({kInf, 1.0, kInf}), kInf);
  EXPECT_EQ(exact({-kInf, kMax}), -kInf);
  EXPECT_TRUE(std::isnan(exact({kInf, -kInf})));
  EXPECT_TRUE(std::isnan(exact({1.0, std::nan("")})));
}

TEST(ExactSum, RoundsOnceToNarrowFormats) {
  // Rounding to double first would give a tie, and the tie the wrong neighbour.
  ExactSum sum;
  for (const double part : {1.0, 0x1p-24, 0x1p-60}) sum.add(part);
  EXPECT_EQ(sum.round(format_of<float>), static_cast<double>(1.0f + 0x1p-23f));
  ExactSum large;
  large.add(65504.0);
  large.add(15.0);
  EXPECT_EQ(large.round(format_of<Half>), 65504.0);
  large.add(1.0);
  EXPECT_EQ(large.round(format_of<Half>), kInf);
  ExactSum small;
  small.add(0x1p-150);
  EXPECT_EQ(small.round(format_of<float>), 0.0);
  small.add(0x1p-151);
  EXPECT_EQ(small.round(format_of<float>), 0x1p-149);
  EXPECT_EQ(small.round(), 0x1.8p-150);
}

TEST(ExactSum, DividesBeforeItRounds) {
  ExactSum sum;
  for (const double part : {kMax, kMax, kMax}) sum.add(part);
  EXPECT_EQ(sum.round_quotient(3), kMax);
  ExactSum tiny;
  tiny.add(3 * kTiny);
  EXPECT_EQ(tiny.round_quotient(2), 2 * kTiny);  // 1.5 units: to even
  EXPECT_EQ(tiny.round_quotient(7), 0.0);
  EXPECT_EQ(tiny.round_quotient(6), 0.0);  // half a unit: to even
  EXPECT_EQ(tiny.round_quotient(5), kTiny);
  ExactSum one;
  one.add(1.0);
  EXPECT_EQ(one.round_quotient(3), 1.0 / 3.0);
  EXPECT_EQ(one.round_quotient(uint64_t{1} << 62), 0x1p-62);
  EXPECT_EQ(one.round_quotient((uint64_t{1} << 62) + 512), 0x1p-62 * (1.0 - 0x1p-53));
}

TEST(ExactSum, CountsIntegersExactly) {
  ExactSum sum;
  sum.add_integer(std::numeric_limits<int64_t>::min());
  sum.add_integer(std::numeric_limits<int64_t>::max());
  EXPECT_EQ(sum.round(), -1.0);
  sum.add_integer(std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(sum.round(), 0x1p64);
}

TEST(ExactSum, GivesEqualBytesForAnyOrderAndSplit) {
  std::mt19937_64 random(7);
  std::uniform_int_distribution<int> exponent(-1000, 1000);
  std::normal_distribution<double> mantissa;
  std::vector<double> values(500);
  for (double& value : values) value = std::ldexp(mantissa(random), exponent(random));
  ExactSum reference;
  for (const double value : values) reference.add(value);
  reference.normalize();
  for (int trial = 0; trial < 50; ++trial) {
    std::shuffle(values.begin(), values.end(), random);
    std::array<ExactSum, 7> parts;
    for (const double value : values)
      parts[random() % (1 + static_cast<unsigned>(trial) % 7)].add(value);
    for (size_t i = 1; i < parts.size(); ++i) parts[0].merge(parts[i]);
    parts[0].normalize();
    ASSERT_EQ(std::memcmp(&parts[0], &reference, sizeof(ExactSum)), 0);
  }
}

TEST(ExactSum, SurvivesMoreAdditionsThanADigitHolds) {
  ExactSum sum;
  sum.pending = ExactSum::kMaxPending - 2;
  for (int i = 0; i < 8; ++i) sum.add(-0x1.fffffffffffffp-1);
  EXPECT_EQ(sum.round(), -8.0 * 0x1.fffffffffffffp-1);
  EXPECT_LT(sum.pending, 10);
}

}  // namespace
}  // namespace cuop
