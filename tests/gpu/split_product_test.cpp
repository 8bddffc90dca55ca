// Products of float32 by parts of the elements on matrix units: as accurate as sums in float32, and
// with its range.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "cuop/backend/library_use.h"
#include "cuop/core/text.h"
#include "cuop/memory/limited.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/matmul/kept_parts.h"
#include "cuop/ops/matmul/matmul.h"
#include "cuop/ops/matmul/repeated_operand.h"
#include "cuop/ops/matmul/split_product_internal.h"
#include "tests/gpu/matrix_units_test.h"

namespace cuop {
namespace {

constexpr float kMax = std::numeric_limits<float>::max();

class GpuSplitProduct : public MatrixUnitsTest {
 protected:
  /// c <- alpha a @ b + beta c by parts.
  static void by_parts(const Tensor& a, const Tensor& b, const Tensor& c, int columns,
                       const Scalar& alpha = 1, const Scalar& beta = 0) {
    const backend::LibraryWatch watch;
    ASSERT_TRUE(kernels::split_product_cuda({a, b, c, alpha, beta}, columns));
    EXPECT_FALSE(watch.has_library());
    EXPECT_TRUE(watch.has_matrix_units());
    EXPECT_STREQ(watch.precision(), "bf16x6");
  }

  /// Each element within a few units of rounding of the terms' magnitudes, however many there are
  /// of them up to a block of the depth, and one for every block behind it; float32's least number
  /// for each term.
  static void expect_sums(const Tensor& c, const Tensor& a, const Tensor& b,
                          const std::string& what) {
    const DType wide = DType::kFloat64;
    const Tensor x = cast(to_device(a, kCpu), wide), y = cast(to_device(b, kCpu), wide);
    const double blocks = static_cast<double>(x.shape().back()) / 32;
    expect_rounded(c, matmul(x, y), matmul(abs(x), abs(y)), 6 + blocks, blocks * 32, what);
  }

  static Tensor noise(const Shape& shape, uint32_t seed) {
    return gpu(random_values(shape, seed, kSingle));
  }
  /// Into NaN, which must not be read.
  static Tensor product(const Tensor& a, const Tensor& b, int columns) {
    Shape shape = a.shape();
    shape.back() = b.shape().back();
    const Tensor c = full(shape, NAN, kSingle, kGpu);
    by_parts(a, b, c, columns);
    return c;
  }
};

/// So plans count them.
TEST_F(GpuSplitProduct, TakesTheBytesOfItsParts) {
  for (const auto& [m, n, k, batch] : std::vector<std::array<int64_t, 4>>{
           {1, 1, 1, 1}, {129, 65, 33, 1}, {128, 64, 32, 1}, {70, 200, 100, 3}}) {
    const Tensor a = noise({batch, m, k}, 1), b = noise({batch, k, n}, 2);
    const Tensor c = full({batch, m, n}, NAN, kSingle, kGpu);
    const auto limited = memory::make_limited(kGpu, int64_t{1} << 30);
    {
      const memory::ResourceScope scope(*limited);
      by_parts(a, b, c, 64);
    }
    EXPECT_EQ(limited->peak(),
              kernels::parts_bytes(m, k, batch) + kernels::parts_bytes(n, k, batch))
        << m << ' ' << n << ' ' << k << ' ' << batch;
  }
}

TEST_F(GpuSplitProduct, KeepsThePartsOfAnOperandForTheNextProduct) {
  const Tensor a = noise({130, 70}, 1), b = noise({70, 65}, 2), other = noise({70, 65}, 3);
  const int64_t of_a = kernels::parts_bytes(130, 70, 1), of_b = kernels::parts_bytes(65, 70, 1);
  const auto limited = memory::make_limited(kGpu, of_a + of_b);
  const Tensor c = full({130, 65}, NAN, kSingle, kGpu);
  KeptParts parts;
  const auto expect_product = [&](const Tensor& x, const Tensor& y, int64_t reused) {
    {
      const memory::ResourceScope memory(*limited);
      const KeptParts::Scope scope(parts);
      by_parts(x, y, c, 64);
    }
    expect_sums(c, x, y, cat("reused ", reused));
    EXPECT_EQ(parts.reused(), reused);
    EXPECT_EQ(limited->live(), of_a + of_b);
  };
  expect_product(a, b, 0);
  expect_product(a, other, 1);
  expect_product(a, b, 2);
  expect_product(a, b, 4);
  {  // another tensor in the same place is not the same operand
    Tensor short_lived = noise({130, 70}, 4);
    expect_product(short_lived, b, 5);
    short_lived = {};
    expect_product(noise({130, 70}, 5), b, 6);
  }
  parts.forget();
  EXPECT_EQ(limited->live(), 0);
}

TEST_F(GpuSplitProduct, AnySizes) {
  for (const int columns : {64, 128}) {
    for (const auto& [m, k, n] : {std::array<int64_t, 3>{1, 1, 1},
                                  {7, 33, 5},
                                  {128, 32, 64},
                                  {129, 65, 130},
                                  {130, 200, 65}}) {
      const Tensor a = noise({m, k}, 1), b = noise({k, n}, 2);
      expect_sums(product(a, b, columns), a, b, cat(columns, ": ", m, ", ", k, ", ", n));
    }
  }
}

TEST_F(GpuSplitProduct, BlocksGoOnWithTheirNextTiles) {
  const Tensor a = noise({2, 260, 70}, 1), b = noise({2, 70, 66}, 2);
  const Tensor c = full({2, 260, 66}, NAN, kSingle, kGpu);
  ASSERT_TRUE(kernels::split_product_cuda({a, b, c}, 64, 5));  // 12 tiles of three steps each
  expect_sums(c, a, b, "five blocks");
}

/// Too long for a simulated GPU (tests/gpu_tests.cmake).
TEST_F(GpuSplitProduct, LargeSizes) {
  for (const int columns : {64, 128}) {
    for (const auto& [m, k, n] : {std::array<int64_t, 3>{1031, 517, 770},
                                  {512, 4099, 640},
                                  {300, 20000, 200},
                                  {2100, 100, 3000}}) {
      const Tensor a = noise({m, k}, 1), b = noise({k, n}, 2);
      expect_sums(product(a, b, columns), a, b, cat(columns, ": ", m, ", ", k, ", ", n));
    }
  }
}

/// What `matmul` does by itself, with all its forms: its error is below that of sums in float32.
TEST_F(GpuSplitProduct, ServesLargeMatmuls) {
  for (const bool trans_a : {false, true}) {
    for (const bool trans_b : {false, true}) {
      const Tensor a = noise({1100, 1500}, 1), b = noise({1500, 1300}, 2);
      MatmulOptions options;
      options.trans_a = trans_a;
      options.trans_b = trans_b;
      const backend::LibraryWatch watch;
      const Tensor c = matmul(trans_a ? contiguous(transpose(a)) : a,
                              trans_b ? contiguous(transpose(b)) : b, options);
      EXPECT_STREQ(watch.precision(), "bf16x6");
      expect_sums(c, a, b, cat(trans_a, trans_b));
    }
  }
}

TEST_F(GpuSplitProduct, OperandsSplitOneAtATime) {
  const Tensor a = noise({130, 70}, 1), b = noise({70, 140}, 2);
  const auto first = kernels::room_for_parts(kernels::MatrixStack::of(a, 0, 1, 0));
  const auto second = kernels::room_for_parts(kernels::MatrixStack::of(b, 0, 1, 0).turned());
  kernels::split_stack(first);
  kernels::split_stack(second);
  const Tensor c = full({130, 140}, NAN, kSingle, kGpu);
  kernels::multiply_parts(first, second, kernels::MatrixStack::of(c, 0, 1, 0), 1, 0, 128);
  expect_sums(c, a, b, "one at a time");
}

TEST_F(GpuSplitProduct, ARepeatedOperandIsSplitOnce) {
  const Tensor matrix = noise({1100, 1300}, 1);
  for (const int side : {0, 1}) {
    const RepeatedOperand repeated(matrix, side, 1100, 1200);
    for (const int64_t length : {1200, 37}) {
      const Tensor other = side == 0 ? noise({1300, length}, 2) : noise({length, 1100}, 3);
      const Tensor c =
          full(side == 0 ? Shape{1100, length} : Shape{length, 1300}, NAN, kSingle, kGpu);
      repeated.multiply(other, c);
      expect_sums(c, side == 0 ? matrix : other, side == 0 ? other : matrix, cat(side, length));
    }
    // Another dtype is multiplied as always.
    const RepeatedOperand wide(cast(matrix, DType::kFloat64), side, 1100, 1200);
    const Tensor other =
        cast(side == 0 ? noise({1300, 20}, 2) : noise({20, 1100}, 3), DType::kFloat64);
    const Tensor c = empty(side == 0 ? Shape{1100, 20} : Shape{20, 1300}, DType::kFloat64, kGpu);
    wide.multiply(other, c);
    expect_sums(c, side == 0 ? matrix : other, side == 0 ? other : matrix, "float64");
  }
}

TEST_F(GpuSplitProduct, AnyStridesAlphaAndBeta) {
  const Tensor wide_a = noise({70, 120}, 1), wide_b = noise({40, 66}, 2);
  const Tensor a = slice(slice(wide_a, 0, 0, 70, 2), 1, 0, 120, 3);   // [35, 40]
  const Tensor b = slice(wide_b, 1, std::nullopt, std::nullopt, -1);  // [40, 66]
  const Tensor room = full({35, 140}, 7.0, kSingle, kGpu);
  const Tensor c = slice(room, 1, 1, 133, 2);  // [35, 66]
  for (const int columns : {64, 128}) {
    fill(room, 7);
    by_parts(a, b, c, columns, -1.5, 0.25);
    const Tensor plain = matmul(cast(to_device(a, kCpu), DType::kFloat64),
                                cast(to_device(b, kCpu), DType::kFloat64));
    expect_close(c, cast(add(multiply(plain, -1.5), 0.25 * 7), kSingle), 1e-6);
    EXPECT_EQ(host_values(slice(room, 1, 0, 140, 2)), host_values(full({35, 70}, 7.0, kSingle)));
  }
  // Operands that lie the other way round.
  const Tensor x = transpose(noise({50, 130}, 3)), y = transpose(noise({70, 50}, 4));
  expect_sums(product(x, y, 64), x, y, "transposed");
}

TEST_F(GpuSplitProduct, BatchesAndMatricesThatServeAllOfThem) {
  const Tensor a = noise({3, 2, 20, 40}, 1), b = noise({3, 2, 40, 70}, 2);
  const Tensor one_a = broadcast_to(noise({20, 40}, 3), {3, 2, 20, 40});
  const Tensor one_b = broadcast_to(noise({3, 1, 40, 70}, 4), {3, 2, 40, 70});
  expect_sums(product(a, b, 64), a, b, "both");
  expect_sums(product(one_a, b, 64), one_a, b, "one a");
  expect_sums(product(a, one_b, 128), a, one_b, "one b of two");
  const Tensor turned = swap_axes(noise({40, 3, 20}, 5), 0, 2);  // [20, 3, 40]
  const Tensor stack = swap_axes(turned, 0, 1);                  // [3, 20, 40]
  const Tensor c = noise({3, 40, 70}, 6);
  expect_sums(product(stack, c, 64), stack, c, "far apart");
}

/// float32's whole range: all elements of a line very large or very small, or both among others.
TEST_F(GpuSplitProduct, ElementsOfAnyMagnitude) {
  const auto scaled = [](const Shape& shape, uint32_t seed, double factor) {
    return multiply(noise(shape, seed), factor);
  };
  const std::array<std::pair<double, double>, 6> factors{
      {{1e37, 1e-30}, {1e-30, 1e37}, {1e-42, 1e30}, {1e18, 1e18}, {1e-36, 1e-5}, {1e-22, 1e-21}}};
  for (const auto& [large, small] : factors) {
    const Tensor a = scaled({20, 70}, 1, large), b = scaled({70, 20}, 2, small);
    expect_sums(product(a, b, 64), a, b, cat(large, " * ", small));
  }
  // Exponents from -38 to 37 within each line; its partner is moderate.
  const Tensor powers = random_values({30, 90}, 3, DType::kFloat64);
  const Tensor wide = gpu(cast(multiply(exp(multiply(powers, 85.0)), powers), kSingle));
  const Tensor one = noise({90, 30}, 4);
  expect_sums(product(wide, one, 64), wide, one, "wide lines of a");
  const Tensor turned = transpose(wide), left = noise({40, 90}, 5);
  expect_sums(product(left, turned, 64), left, turned, "wide lines of b");
  // A moderate line with the smallest numbers there are.
  const Tensor deep = random_values({20, 90}, 6, kSingle);
  for (int64_t i = 0; i < deep.size(); i += 3) deep.data<float>()[i] *= i % 2 == 0 ? 1e-44F : 1e7F;
  expect_sums(product(gpu(deep), one, 64), deep, one, "denormal numbers among large ones");
  // Small ones alone count where the other side has zeros.
  const Tensor a = zeros({2, 40}), b = zeros({40, 2});
  a.data<float>()[0] = 1e30F, a.data<float>()[1] = 1.1e-38F;
  a.data<float>()[40] = 1, a.data<float>()[41] = 3e-40F;
  b.data<float>()[2] = 1, b.data<float>()[3] = 1e20F;
  expect_sums(product(gpu(a), gpu(b), 64), a, b, "small beside large");
}

TEST_F(GpuSplitProduct, InfinitiesAndNan) {
  const Tensor a = random_values({140, 40}, 1, kSingle), b = random_values({40, 70}, 2, kSingle);
  auto* x = a.data<float>();
  auto* y = b.data<float>();
  x[0] = kInf;            // row 0, with both signs and a zero in b
  x[3 * 40 + 7] = -kInf;  // row 3
  x[130 * 40 + 5] = NAN;  // row 130
  y[0] = 0;               // inf * 0 in column 0
  y[9 * 70 + 66] = kInf;  // column 66
  const auto given = [&](int columns) { return to_device(product(gpu(a), gpu(b), columns), kCpu); };
  const Tensor wanted = matmul(a, b);
  for (const int columns : {64, 128}) {
    const Tensor c = given(columns);
    for (int64_t i = 0; i < c.size(); ++i) {
      const float got = c.data<float>()[i], right = wanted.data<float>()[i];
      if (std::isfinite(right)) {
        EXPECT_NEAR(got, right, 1e-5) << i;
      } else if (std::isnan(right)) {
        EXPECT_TRUE(std::isnan(got)) << i;
      } else {
        EXPECT_EQ(got, right) << i;
      }
    }
  }
}

TEST_F(GpuSplitProduct, SumsOverflowWhereThoseOfFloat32Do) {
  const Tensor a = zeros({3, 8}), b = zeros({8, 2});
  auto* x = a.data<float>();
  x[0] = kMax;
  x[8] = 3e38F, x[9] = 3e38F;
  x[16] = -3e38F, x[17] = -3e38F;
  b.data<float>()[0] = 1, b.data<float>()[2] = 1;  // column 0 sums both, column 1 is zero
  const Tensor c = to_device(product(gpu(a), gpu(b), 64), kCpu);
  EXPECT_EQ(c.data<float>()[0], kMax);
  EXPECT_EQ(c.data<float>()[2], kInf);
  EXPECT_EQ(c.data<float>()[4], -kInf);
  EXPECT_EQ(c.data<float>()[1], 0);
}

TEST_F(GpuSplitProduct, IsLeftOutWithoutRoomForParts) {
  const Tensor a = noise({40, 40}, 1), c = full({40, 40}, 5.0, kSingle, kGpu);
  const auto limited = memory::make_limited(kGpu, 100);
  {
    const memory::ResourceScope scope(*limited);
    EXPECT_FALSE(kernels::split_product_cuda({a, a, c}, 64));
  }
  EXPECT_EQ(host_values(c), host_values(full({40, 40}, 5.0, kSingle)));
}

}  // namespace
}  // namespace cuop
