#include "cuop/core/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

namespace cuop {
namespace {

/// The nearest value of a format with `digits` significant bits and smallest exponent
/// `min_exponent`, by scaling: an independent statement of "round to nearest even".
double rounded(double value, int digits, int min_exponent) {
  int exponent = 0;
  std::frexp(value, &exponent);
  const double unit = std::ldexp(1.0, std::max(exponent - digits, min_exponent - digits + 1));
  return std::nearbyint(value / unit) * unit;
}

TEST(Half, EveryBitPatternSurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    Half half;
    half.bits = static_cast<uint16_t>(bits);
    const float value = half;
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(static_cast<float>(Half(value))));
    } else {
      EXPECT_EQ(Half(value).bits, bits) << value;
    }
  }
}

TEST(Half, RoundsToNearestEven) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> exponent(-26.0f, 15.9f), mantissa(-2.0f, 2.0f);
  for (int i = 0; i < 100000; ++i) {
    const float value = std::exp2(exponent(random)) * mantissa(random);
    const double expected = rounded(static_cast<double>(value), 11, -14);
    if (std::abs(expected) > 65504.0) continue;
    EXPECT_EQ(static_cast<double>(static_cast<float>(Half(value))), expected) << value;
  }
  EXPECT_EQ(static_cast<float>(Half(65504.0f)), 65504.0f);
  EXPECT_EQ(static_cast<float>(Half(65519.9f)), 65504.0f);
  EXPECT_TRUE(std::isinf(static_cast<float>(Half(65520.0f))));
  EXPECT_EQ(Half(-0.0f).bits, 0x8000);
}

TEST(BFloat16, RoundsToNearestEven) {
  std::mt19937 random(8);
  for (int i = 0; i < 100000; ++i) {
    const float value = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (!std::isfinite(value) || std::abs(value) > 3.38e38f) continue;
    const double expected = rounded(static_cast<double>(value), 8, -126);
    EXPECT_EQ(static_cast<double>(static_cast<float>(BFloat16(value))), expected) << value;
  }
  EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(std::numeric_limits<float>::quiet_NaN()))));
  EXPECT_TRUE(std::isinf(static_cast<float>(BFloat16(std::numeric_limits<float>::max()))));
}

}  // namespace
}  // namespace cuop
