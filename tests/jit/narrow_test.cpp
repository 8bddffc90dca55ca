// Wider numbers as 16-bit floats: rounded once, at every instruction set and on every path.
#include "cuop/jit/kernels/narrow.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "cuop/jit/cpu/block_kernels.h"
#include "cuop/jit/parameter.h"
#include "cuop/ops/convert_internal.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "tests/jit/levels.h"

namespace cuop {
namespace {

using jit::narrowed;

template <class T>
T from_bits(uint32_t bits) {
  T value;
  value.bits = static_cast<uint16_t>(bits);
  return value;
}
template <class T>
double value_of(uint32_t bits) {
  return static_cast<double>(static_cast<float>(from_bits<T>(bits)));
}

struct NarrowCase {
  double value;
  uint16_t bits;  ///< what it rounds to
};

/// Every number of the format, every middle between neighbours, and the doubles beside them.
template <class T>
std::vector<NarrowCase> cases() {
  const uint32_t infinity = std::is_same_v<T, Half> ? 0x7c00u : 0x7f80u;
  std::vector<NarrowCase> all;
  const auto add = [&](double value, uint32_t bits) {
    all.push_back({value, static_cast<uint16_t>(bits)});
    all.push_back({-value, static_cast<uint16_t>(bits | 0x8000u)});
  };
  constexpr double kFar = std::numeric_limits<double>::infinity();
  for (uint32_t bits = 0; bits < infinity; ++bits) {
    const double here = value_of<T>(bits);
    // The next number would be a power of two where infinity stands.
    const double next =
        bits + 1 < infinity ? value_of<T>(bits + 1) : std::ldexp(1.0, std::ilogb(here) + 1);
    const double middle = here + (next - here) / 2;
    add(here, bits);
    add(std::nextafter(here, kFar), bits);
    add(std::nextafter(middle, 0.0), bits);
    add(middle, bits % 2 == 0 ? bits : bits + 1);
    add(std::nextafter(middle, kFar), bits + 1);
  }
  add(1e300, infinity);
  add(kFar, infinity);
  add(std::numeric_limits<double>::denorm_min(), 0);
  return all;
}

template <class T>
class Narrow : public testing::Test {};
using Formats = testing::Types<Half, BFloat16>;
TYPED_TEST_SUITE(Narrow, Formats);

TYPED_TEST(Narrow, DoublesAreRoundedOnce) {
  int wrong = 0;
  for (const NarrowCase& each : cases<TypeParam>()) {
    const bool is_right = narrowed<TypeParam>(each.value).bits == each.bits;
    if (!is_right && ++wrong < 5) ADD_FAILURE() << each.value << " became " << each.bits;
  }
  EXPECT_EQ(wrong, 0);
  for (const double sign : {1.0, -1.0}) {
    const double nan = std::copysign(std::numeric_limits<double>::quiet_NaN(), sign);
    EXPECT_TRUE(std::isnan(static_cast<float>(narrowed<TypeParam>(nan))));
  }
}

TYPED_TEST(Narrow, CastsOfBlocksRoundOnceAtEveryInstructionSet) {
  std::vector<NarrowCase> all = cases<TypeParam>();
  while (all.size() % jit::kBlockMultiple != 0) all.push_back(all.front());
  std::vector<double> from;
  for (const NarrowCase& each : all) from.push_back(each.value);
  std::vector<TypeParam> to(all.size());
  for (const isa::Level level : test::levels()) {
    const auto cast = jit::block_table(level).cast(DType::kFloat64, dtype_of<TypeParam>);
    ASSERT_NE(cast, nullptr);
    cast(to.data(), from.data(), nullptr, nullptr, static_cast<int64_t>(from.size()));
    int wrong = 0;
    for (size_t i = 0; i < all.size(); ++i) wrong += to[i].bits != all[i].bits;
    EXPECT_EQ(wrong, 0) << isa::name(level);
  }
}

/// Integers about the middle between neighbours of the format, as large as T has them.
template <class Format, class T>
void expect_integers_round_once() {
  const uint32_t infinity = std::is_same_v<Format, Half> ? 0x7c00u : 0x7f80u;
  constexpr auto kMost = static_cast<double>(std::numeric_limits<T>::max());
  for (uint32_t bits = 0; bits + 1 < infinity; ++bits) {
    const double here = value_of<Format>(bits), next = value_of<Format>(bits + 1);
    if (next - here < 4.0 || next > kMost) continue;
    const auto low = static_cast<T>(here), half = static_cast<T>((next - here) / 2);
    const auto middle = static_cast<T>(low + half);
    const uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    EXPECT_EQ(narrowed<Format>(middle).bits, even) << +middle;
    EXPECT_EQ(narrowed<Format>(static_cast<T>(middle - 1)).bits, bits) << +middle;
    EXPECT_EQ(narrowed<Format>(static_cast<T>(middle + 1)).bits, bits + 1) << +middle;
    if constexpr (std::is_signed_v<T>) {
      EXPECT_EQ(narrowed<Format>(static_cast<T>(-middle - 1)).bits, (bits + 1) | 0x8000u);
      EXPECT_EQ(narrowed<Format>(static_cast<T>(1 - middle)).bits, bits | 0x8000u);
    }
  }
}

TYPED_TEST(Narrow, IntegersAreRoundedOnce) {
  expect_integers_round_once<TypeParam, int32_t>();
  expect_integers_round_once<TypeParam, uint32_t>();
  expect_integers_round_once<TypeParam, int64_t>();
  expect_integers_round_once<TypeParam, uint64_t>();
}

TYPED_TEST(Narrow, NumbersGivenByTheCallerAreRoundedOnce) {
  const DType dtype = dtype_of<TypeParam>;
  // Just above the middle between 1 and its neighbour: by way of float32 it would be the middle.
  const double unit = value_of<TypeParam>(TypeParam(1.0f).bits + 1u) - 1.0;
  const double above = std::nextafter(1.0 + unit / 2, 2.0);
  const auto expected = static_cast<float>(1.0 + unit);
  float parameter = 0;
  jit::store_parameter(above, dtype, &parameter);
  EXPECT_EQ(parameter, expected);
  EXPECT_EQ(static_cast<float>(convert_scalar<TypeParam>(above)), expected);
  EXPECT_EQ(static_cast<float>(*full({1}, above, dtype).template data<TypeParam>()), expected);
  const Tensor wide = full({5}, above, DType::kFloat64), narrow = zeros({5}, dtype);
  EXPECT_EQ(static_cast<float>(cast(wide, dtype).template data<TypeParam>()[3]), expected);
  copy_into(narrow, wide);
  EXPECT_EQ(static_cast<float>(narrow.template data<TypeParam>()[4]), expected);
}

TEST(NarrowNumbers, IntegersAreNoDoublesOnTheWay) {
  // 2^60 + 2^52 is the middle between neighbours of bfloat16; a double has no room for the one.
  const int64_t above = (int64_t{1} << 60) + (int64_t{1} << 52) + 1;
  const float expected = 0x1.02p60f;
  EXPECT_EQ(static_cast<float>(convert_scalar<BFloat16>(above)), expected);
  EXPECT_EQ(static_cast<float>(*full({1}, above, DType::kBFloat16).data<BFloat16>()), expected);
  const Tensor wide = full({3}, above, DType::kInt64);
  EXPECT_EQ(static_cast<float>(cast(wide, DType::kBFloat16).data<BFloat16>()[1]), expected);
  // And of float32 the same, one bit further.
  const int64_t middle = (int64_t{1} << 60) + (int64_t{1} << 36) + 1;
  EXPECT_EQ(convert_scalar<float>(middle), 0x1.000002p60f);
  EXPECT_EQ(*full({1}, middle, DType::kFloat32).data<float>(), 0x1.000002p60f);
}

}  // namespace
}  // namespace cuop
