#include "cuop/ops/sparse/bitmap.h"

#include <gmock/gmock.h>

#include <complex>
#include <limits>
#include <random>

#include "cuop/core/text.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"
#include "tests/error_of.h"

namespace cuop {
namespace {

using ::testing::HasSubstr;

TEST(Bitmap, ThereAndBackOfAnyLength) {
  std::mt19937 random(1);
  // Around whole bytes of bits and whole blocks of a task.
  for (const int64_t n : {1, 7, 8, 9, 255, 16383, 16384, 16385, 70001}) {
    for (const double zeros_part : {0.0, 0.5, 0.99, 1.0}) {
      std::bernoulli_distribution is_zero(zeros_part);
      std::vector<float> given(static_cast<size_t>(n));
      int64_t nonzeros = 0;
      for (float& value : given) {
        value = is_zero(random) ? 0.0f : 1.0f + static_cast<float>(random() % 1000);
        nonzeros += value != 0 ? 1 : 0;
      }
      const Bitmap bitmap = bitmap_of(from_values<float>({n}, given), nonzeros);
      ASSERT_EQ(bitmap.bits.size(), (n + 7) / 8);
      const Tensor out = full({n}, 7, DType::kFloat32);
      expand_bitmap(bitmap, out);
      EXPECT_TRUE(std::equal(given.begin(), given.end(), out.data<float>())) << n;
      const auto* const bits = bitmap.bits.data<uint8_t>();
      for (int64_t i = 0; i < n; ++i) {
        ASSERT_EQ(bits[i / 8] >> i % 8 & 1, given[static_cast<size_t>(i)] != 0 ? 1 : 0) << i;
      }
    }
  }
}

TEST(Bitmap, KnowsZerosOfEveryDtype) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor reals = from_values<double>({5}, {0.0, -0.0, nan, 1.0, 0.0});
  const Bitmap bitmap = bitmap_of(reals, 2);
  EXPECT_EQ(bitmap.bits.data<uint8_t>()[0], 0b01100);
  const Tensor imaginary = zeros({3}, DType::kComplex64);
  imaginary.data<std::complex<float>>()[1] = {0, 2};
  EXPECT_EQ(bitmap_of(imaginary, 1).bits.data<uint8_t>()[0], 0b010);
  for (const DType dtype : {DType::kBool, DType::kInt8, DType::kFloat16, DType::kBFloat16,
                            DType::kUInt64, DType::kComplex128}) {
    const Tensor x = cast(from_values<double>({4}, {0.0, 1.0, 0.0, 1.0}), dtype);
    EXPECT_EQ(bitmap_of(x, 2).bits.data<uint8_t>()[0], 0b1010) << dtype;
  }
}

TEST(Bitmap, ReadsStridesAndGaps) {
  const Tensor x = from_values<float>({6}, {0, 1, 2, 0, 0, 3});
  const Bitmap bitmap = bitmap_of(slice(x, 0, 1, 6, 2), 2);  // 1, 0, 3
  EXPECT_EQ(bitmap.bits.data<uint8_t>()[0], 0b101);
  EXPECT_EQ(bitmap.values.data<float>()[1], 3.0f);
}

TEST(Bitmap, RefusesBitsThatDoNotFitTheValues) {
  const Tensor out = zeros({10}, DType::kFloat32), two = ones({2}, DType::kFloat32);
  const auto refusal = [&](const std::vector<uint8_t>& bits) {
    return test::error_of<ExecutionError>([&] {
      expand_bitmap({from_values<uint8_t>({2}, bits), two}, out);
    });
  };
  EXPECT_THAT(refusal({7, 0}), HasSubstr("bitmap: 2 values for 3 bits that are set"));
  EXPECT_THAT(refusal({1, 0}), HasSubstr("2 values for 1 bits"));
  EXPECT_THAT(refusal({1, 4}), HasSubstr("none behind the last element"));
  EXPECT_NO_THROW(expand_bitmap({from_values<uint8_t>({2}, {1, 2}), two}, out));
  EXPECT_EQ(out.data<float>()[9], 1.0f);
}

}  // namespace
}  // namespace cuop
