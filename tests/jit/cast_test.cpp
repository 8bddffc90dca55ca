// Conversions of blocks: what fused programs and copies compute is what elements alone become.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "cuop/jit/cpu/block_kernels.h"
#include "cuop/ops/convert_internal.h"
#include "tests/jit/levels.h"

namespace cuop {
namespace {

/// Sums and differences of powers of two, and integers beside them.
template <class T>
void add_integers(std::vector<T>& all) {
  for (int digit = 0; digit < std::numeric_limits<T>::digits; ++digit) {
    for (int below = 0; below <= digit; ++below) {
      const auto one = uint64_t{1}, number = (one << digit) + (one << below);
      for (uint64_t beside = 0; beside < 3; ++beside) {
        all.push_back(static_cast<T>(number - beside));
        all.push_back(static_cast<T>(beside - number));
      }
    }
  }
}

/// Every sign and exponent with the first digits, and last digits beside what conversions cut off.
template <class T>
void add_floats(std::vector<T>& all) {
  using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  constexpr int kLow = std::numeric_limits<Bits>::digits - 16;
  for (Bits high = 0; high < 0x10000u; ++high) {
    for (const Bits low : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0x0fffu, 0x1000u, 0x1001u}) {
      all.push_back(std::bit_cast<T>(high << kLow | low << (kLow - 16) | (low & 1u)));
    }
  }
}

/// A multiple of the width of blocks.
template <class T>
std::vector<T> numbers() {
  std::vector<T> all;
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    for (uint32_t bits = 0; bits < 0x10000u; ++bits) {
      all.push_back(std::bit_cast<T>(static_cast<uint16_t>(bits)));
    }
  } else if constexpr (std::is_floating_point_v<T>) {
    add_floats(all);
  } else if constexpr (is_complex_type<T>) {
    for (const auto part : numbers<typename T::value_type>()) {
      all.push_back({part, 1});
      all.push_back({0, part});
    }
  } else {
    add_integers(all);
  }
  while (all.size() % jit::kBlockMultiple != 0) all.push_back(all.front());
  return all;
}

template <class To, class From>
void expect_as_elements(const std::vector<From>& from) {
  for (const isa::Level level : test::levels()) {
    const auto cast = jit::block_table(level).cast(dtype_of<From>, dtype_of<To>);
    if (cast == nullptr) continue;  // programs go by way of float32
    const auto to = std::make_unique<To[]>(from.size());
    // In short blocks, which may take a way that numbers of another size forbid.
    for (size_t i = 0; i < from.size(); i += jit::kBlockMultiple) {
      cast(&to[i], &from[i], nullptr, nullptr, jit::kBlockMultiple);
    }
    int wrong = 0;
    for (size_t i = 0; i < from.size(); ++i) {
      const To expected = convert<To>(from[i]);
      wrong += std::memcmp(&to[i], &expected, sizeof(To)) != 0;
    }
    EXPECT_EQ(wrong, 0) << dtype_of<From> << " to " << dtype_of<To> << " at " << isa::name(level);
  }
}

template <class From, class... To>
void expect_all_as_elements(TypeList<To...>) {
  const std::vector<From> from = numbers<From>();
  const auto expect = [&]<class T>(TypeTag<T>) {
    if constexpr (is_convertible<T, From> && !std::is_same_v<T, From>) expect_as_elements<T>(from);
  };
  (expect(TypeTag<To>()), ...);
}

template <class From>
class BlockCast : public testing::Test {};
using Elements =
    testing::Types<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, Half,
                   BFloat16, float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(BlockCast, Elements);

TYPED_TEST(BlockCast, HoldsWhatElementsBecomeAtEveryInstructionSet) {
  expect_all_as_elements<TypeParam>(AllTypes{});
}

}  // namespace
}  // namespace cuop
