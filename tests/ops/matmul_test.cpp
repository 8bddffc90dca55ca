#include "cuop/ops/matmul/matmul.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <random>
#include <thread>

#include "cuop/backend/cpu/blas.h"
#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/index/arrange.h"
#include "cuop/ops/index/view.h"
#include "tests/error_of.h"

namespace cuop {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// Small whole numbers, so that float32 sums are exact and results compare with ==.
Tensor whole_numbers(const Shape& shape, uint32_t seed, DType dtype = DType::kFloat32) {
  std::mt19937 generator(seed);
  std::uniform_int_distribution<int> values(-4, 4);
  Tensor t = empty(shape, DType::kFloat64);
  for (int64_t i = 0; i < t.size(); ++i) t.data<double>()[i] = values(generator);
  return cast(t, dtype);
}

/// The real parts; a tensor of these whole numbers has no others.
std::vector<double> real_values(const Tensor& t) {
  if (is_complex(t.dtype())) {
    for (const double part : real_values(imag(t))) EXPECT_EQ(part, 0.0);
    return real_values(real(t));
  }
  const Tensor dense = contiguous(cast(t, DType::kFloat64));
  return {dense.data<double>(), dense.data<double>() + dense.size()};
}

std::vector<double> naive(const Tensor& a, const Tensor& b) {
  const int64_t m = a.shape(0), k = a.shape(1), n = b.shape(1);
  const auto x = real_values(a), y = real_values(b);
  std::vector<double> c(static_cast<size_t>(m * n), 0.0);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t l = 0; l < k; ++l) {
      for (int64_t j = 0; j < n; ++j) {
        c[static_cast<size_t>(i * n + j)] +=
            x[static_cast<size_t>(i * k + l)] * y[static_cast<size_t>(l * n + j)];
      }
    }
  }
  return c;
}

TEST(Matmul, EveryDtypeAgreesWithTheDefinition) {
  for (const DType dtype : {DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64,
                            DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64,
                            DType::kComplex64, DType::kComplex128}) {
    // Few enough terms for int8 and bfloat16 to hold every sum.
    const Tensor a = whole_numbers({37, 7}, 1, dtype), b = whole_numbers({7, 53}, 2, dtype);
    const Tensor c = matmul(a, b);
    EXPECT_EQ(c.dtype(), dtype);
    EXPECT_EQ(real_values(c), naive(a, b)) << dtype;
  }
}

TEST(Matmul, SplitsOverThreadsWithoutChangingTheResult) {
  const Tensor a = whole_numbers({301, 257}, 3), b = whole_numbers({257, 263}, 4);
  backend::set_thread_count(1);
  const auto one = real_values(matmul(a, b));
  for (const int threads : {2, 3, 7}) {
    backend::set_thread_count(threads);
    EXPECT_EQ(real_values(matmul(a, b)), one) << threads;
  }
  backend::set_thread_count(0);
  EXPECT_EQ(one, naive(a, b));
}

TEST(Matmul, AMatrixTimesItsTransposeIsExactlySymmetric) {
  for (const bool is_wide : {true, false}) {
    Tensor a = whole_numbers({501, 33}, 9);
    if (is_wide) a = transpose(whole_numbers({33, 501}, 9));
    EXPECT_EQ(real_values(matmul(a, transpose(a))), naive(a, transpose(a)));
    EXPECT_EQ(real_values(matmul(a, a, {.trans_b = true})), naive(a, transpose(a)));
    Tensor fraction = cast(a, DType::kFloat64);
    for (int64_t i = 0; i < fraction.size(); ++i) fraction.data<double>()[i] /= 3;
    const Tensor gram = matmul(fraction, transpose(fraction));
    EXPECT_EQ(real_values(gram), real_values(transpose(gram)));
  }
}

TEST(Matmul, ConjugateTransposesOnEitherSide) {
  using Complex128 = std::complex<double>;
  const Tensor a = from_values<Complex128>({2, 1}, {{1, 2}, {3, -1}});
  const Tensor squares = matmul(a, a, {.trans_a = Trans::kConjTrans});  // |1 + 2i|^2 + |3 - i|^2
  EXPECT_EQ(*squares.data<Complex128>(), Complex128(15, 0));
  const Tensor outer_product = matmul(a, a, {.trans_b = "conj_trans"});
  EXPECT_EQ(outer_product.data<Complex128>()[1], Complex128(1, 2) * Complex128(3, 1));
  EXPECT_EQ(*matmul(a, a, {.trans_a = "trans"}).data<Complex128>(), Complex128(5, -2));
}

TEST(Matmul, LargeIntegersCrossTileBorders) {
  const Tensor a = whole_numbers({270, 300}, 5, DType::kInt64);
  const Tensor b = whole_numbers({300, 290}, 6, DType::kInt64);
  EXPECT_EQ(real_values(matmul(a, b)), naive(a, b));
  for (const Shape& thin : {Shape{1, 300}, Shape{7, 300}}) {
    const Tensor row = whole_numbers(thin, 7, DType::kInt8);
    const Tensor column = whole_numbers({300, 1}, 8, DType::kInt8);
    const Tensor wide = whole_numbers({300, 700}, 9, DType::kInt16);
    EXPECT_EQ(real_values(matmul(cast(row, DType::kInt16), cast(column, DType::kInt16))),
              naive(row, column));
    EXPECT_EQ(real_values(matmul(row, wide)), naive(row, wide));
    EXPECT_EQ(real_values(matmul(row, cast(transpose(wide), DType::kInt16), {.trans_b = true})),
              naive(row, wide));
  }
  const Tensor ones_a = ones({3, 66000}, DType::kBool), ones_b = ones({66000, 2}, DType::kBool);
  EXPECT_THAT(real_values(matmul(select(ones_a, 0, 0), ones_b)), ::testing::Each(1.0));
  EXPECT_THAT(real_values(matmul(ones_a, ones_b)), ::testing::Each(1.0));
}

/// True with this probability.
Tensor bools(const Shape& shape, uint32_t seed, double density) {
  std::mt19937 generator(seed);
  std::bernoulli_distribution is_true(density);
  Tensor t = empty(shape, DType::kBool);
  for (int64_t i = 0; i < t.size(); ++i) t.data<bool>()[i] = is_true(generator);
  return t;
}

std::vector<double> naive_or(const Tensor& a, const Tensor& b) {
  std::vector<double> c = naive(a, b);
  for (double& each : c) each = each != 0;
  return c;
}

TEST(Matmul, BoolsAreOrOfAndAtAnyDepthAndLayout) {
  uint32_t seed = 30;
  for (const int64_t depth : {1, 7, 8, 63, 64, 65, 130, 4096, 4167}) {
    for (const auto& [rows, columns] : std::vector<std::pair<int64_t, int64_t>>{
             {1, 1}, {1, 300}, {131, 1}, {3, 2}, {9, 17}, {131, 259}}) {
      if (depth > 130 && rows * columns > 1000) continue;
      const double density = 1 / std::sqrt(static_cast<double>(depth) * 2);
      const Tensor a = bools({rows, depth}, ++seed, density);
      const Tensor b = bools({depth, columns}, ++seed, density);
      const auto expected = naive_or(a, b);
      const Tensor a_turned = transpose(contiguous(transpose(a)));
      const Tensor b_turned = transpose(contiguous(transpose(b)));
      const Tensor b_flipped = flip(contiguous(flip(b)));
      EXPECT_EQ(real_values(matmul(a, b)), expected) << rows << " " << depth << " " << columns;
      EXPECT_EQ(real_values(matmul(a_turned, b)), expected) << depth;
      EXPECT_EQ(real_values(matmul(a, b_turned)), expected) << depth;
      EXPECT_EQ(real_values(matmul(a_turned, b_flipped)), expected) << depth;
    }
  }
}

TEST(Matmul, BoolsAreScaledAndAddedToAsBools) {
  const Tensor a = bools({20, 70}, 1, 0.1), b = bools({70, 30}, 2, 0.1);
  const Tensor before = bools({20, 30}, 3, 0.5);
  const auto product = naive_or(a, b), kept = real_values(before);
  for (const int alpha : {0, 1, 3}) {
    for (const int beta : {0, 2}) {
      Tensor c = copy(before);
      matmul(a, b, {.alpha = alpha, .beta = beta}, &c);
      for (size_t i = 0; i < kept.size(); ++i) {
        const bool expected = (alpha != 0 && product[i] != 0) || (beta != 0 && kept[i] != 0);
        ASSERT_EQ(real_values(c)[i], expected) << alpha << " " << beta << " " << i;
      }
    }
  }
}

TEST(Matmul, HalfCrossesTileBordersAndRoundsOnce) {
  const Tensor a = whole_numbers({390, 400}, 7, DType::kFloat16);
  const Tensor b = whole_numbers({400, 385}, 8, DType::kFloat16);
  const auto expected = naive(a, b);
  const auto got = real_values(matmul(a, b));
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(got[i], static_cast<float>(Half(static_cast<float>(expected[i])))) << i;
  }
}

/// Whole numbers of 11 bits at most, as both formats hold up to 256: sums need more.
Tensor short_numbers(const Shape& shape, uint32_t seed, DType dtype) {
  std::mt19937 generator(seed);
  std::uniform_int_distribution<int> numbers(-255, 255);
  Tensor t = empty(shape, DType::kFloat64);
  for (int64_t i = 0; i < t.size(); ++i) t.data<double>()[i] = numbers(generator);
  return cast(t, dtype);
}

/// Sums stay below 2^24, so that float32 has all of their bits.
TEST(Matmul, ShortOperandsWithAFloat32ResultAreNotRounded) {
  const struct {
    int64_t m, k, n;
  } sizes[] = {{1, 1, 1}, {1, 17, 5}, {5, 17, 1},   {0, 4, 3},      {3, 0, 4},
               {3, 4, 0}, {7, 1, 9},  {37, 53, 29}, {390, 200, 385}};
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    for (const auto& [m, k, n] : sizes) {
      const Tensor a = short_numbers({m, k}, 1, dtype), b = short_numbers({k, n}, 2, dtype);
      const std::vector<double> expected = naive(a, b);
      const MatmulOptions wide{.dtype = DType::kFloat32};
      const Tensor c = matmul(a, b, wide);
      ASSERT_EQ(c.dtype(), DType::kFloat32);
      EXPECT_EQ(real_values(c), expected) << dtype << ' ' << m << ' ' << k << ' ' << n;
      const Tensor a_turned = contiguous(transpose(a)), b_turned = contiguous(transpose(b));
      EXPECT_EQ(real_values(matmul(a_turned, b_turned,
                                   {.trans_a = true, .trans_b = true, .dtype = DType::kFloat32})),
                expected);
      const Tensor steps = zeros({2 * m, 3 * n});
      const Tensor out = slice(slice(steps, 0, 0, 2 * m, 2), 1, 0, 3 * n, 3);
      matmul(a, b, wide, &out);
      EXPECT_EQ(real_values(out), expected);
      fill(out, 3);
      matmul(a, b, {.alpha = 2, .beta = -1, .dtype = DType::kFloat32}, &out);
      std::vector<double> scaled = expected;
      for (double& value : scaled) value = 2 * value - 3;
      EXPECT_EQ(real_values(out), scaled);
    }
    const Tensor stack = short_numbers({2, 3, 9, 8}, 3, dtype);
    const Tensor one = short_numbers({8, 6}, 4, dtype), row = short_numbers({9}, 5, dtype);
    const DType f32 = DType::kFloat32;
    for (const Tensor& right : {one, short_numbers({3, 8, 6}, 6, dtype)}) {
      EXPECT_EQ(real_values(matmul(stack, right, {.dtype = f32})),
                real_values(matmul(cast(stack, f32), cast(right, f32))));
    }
    EXPECT_EQ(real_values(matmul(row, stack, {.dtype = f32})),
              real_values(matmul(cast(row, f32), cast(stack, f32))));
    EXPECT_EQ(real_values(batch_matmul(stack, stack, {.trans_b = true, .dtype = f32})),
              real_values(batch_matmul(cast(stack, f32), cast(stack, f32), {.trans_b = true})));
  }
  // Of two formats the promoted one is float32 already, and a bool becomes what the other is.
  const Tensor half = short_numbers({3, 4}, 1, DType::kFloat16);
  const Tensor other = short_numbers({4, 3}, 2, DType::kBFloat16);
  EXPECT_EQ(real_values(matmul(half, other, {.dtype = DType::kFloat32})), naive(half, other));
  const Tensor flags = ones({4, 3}, DType::kBool);
  EXPECT_EQ(real_values(matmul(half, flags, {.dtype = DType::kFloat32})), naive(half, flags));
}

TEST(Matmul, ResultsOfOtherDtypesAreRefused) {
  const auto refusal = [](DType operands, DType asked) {
    const Tensor a = zeros({2, 2}, operands);
    return test::error_of<DTypeError>([&] { matmul(a, a, {.dtype = asked}); });
  };
  EXPECT_EQ(refusal(DType::kFloat16, DType::kFloat64),
            "matmul: a result of float64 was asked for; that of float16 and float16 is float16 or "
            "float32");
  EXPECT_EQ(refusal(DType::kFloat32, DType::kFloat64),
            "matmul: a result of float64 was asked for; that of float32 and float32 is float32");
  for (const DType asked : {DType::kBFloat16, DType::kInt32, DType::kComplex64}) {
    EXPECT_THAT(refusal(DType::kFloat16, asked), HasSubstr("is float16 or float32"));
  }
  EXPECT_THAT(refusal(DType::kInt8, DType::kFloat32), HasSubstr("int8 and int8 is int8"));
  const Tensor a = zeros({2, 2}, DType::kFloat16);
  EXPECT_EQ(matmul(a, a, {.dtype = DType::kFloat16}).dtype(), DType::kFloat16);
  EXPECT_THAT(test::error_of<DTypeError>([&] { matmul(a, a, {.dtype = DType::kFloat32}, &a); }),
              HasSubstr("the output has dtype float16, needed is float32"));
  const Tensor out = zeros({2, 2});
  EXPECT_THAT(test::error_of<DTypeError>([&] { matmul(a, a, {}, &out); }),
              HasSubstr("the output has dtype float32, needed is float16"));
}

TEST(Matmul, BetaZeroIgnoresWhatTheOutputHolds) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Shape& inner : {Shape{4}, Shape{0}}) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat16}) {
      Shape sa{3}, sb = inner;
      sa.push_back(inner[0]);
      sb.push_back(1);
      Tensor out = full({3, 1}, nan, dtype);
      matmul(whole_numbers(sa, 1, dtype), whole_numbers(sb, 2, dtype), {}, &out);
      for (const double v : real_values(out)) EXPECT_FALSE(std::isnan(v));
    }
  }
}

TEST(Matmul, NoInnerAxisScalesTheOutput) {
  const Tensor a = zeros({2, 0}), b = zeros({0, 3});
  Tensor out = ones({2, 3});
  matmul(a, b, {.beta = 2.5}, &out);
  EXPECT_THAT(real_values(out), ::testing::Each(2.5));
}

TEST(Matmul, StridedOutputsAndViewsAreWrittenInPlace) {
  const Tensor a = whole_numbers({5, 6}, 1), b = whole_numbers({6, 7}, 2);
  const Tensor column_major = zeros({7, 5}), wide = zeros({10, 21});
  const Tensor transposed = transpose(column_major);
  const Tensor strided = slice(slice(wide, 0, 0, 10, 2), 1, 0, 21, 3);
  matmul(a, b, {}, &transposed);
  matmul(a, b, {}, &strided);
  EXPECT_EQ(real_values(transposed), naive(a, b));
  EXPECT_EQ(real_values(strided), naive(a, b));
  const Tensor reversed = slice(a, 1, std::nullopt, std::nullopt, -1);
  EXPECT_EQ(real_values(matmul(reversed, b)), naive(reversed, b));
}

TEST(Matmul, ErrorsNameShapesAndCauses) {
  const Tensor a = zeros({2, 3}), b = zeros({4, 5});
  EXPECT_THAT([&] { matmul(a, b); },
              ThrowsMessage<ShapeError>(HasSubstr("matmul: a of shape (2, 3) has rows of 3, b of "
                                                  "shape (4, 5) has columns of 4")));
  EXPECT_THAT([&] { matmul(a, zeros({})); }, ThrowsMessage<ShapeError>(HasSubstr("b is a scalar")));
  EXPECT_THAT(
      [&] {
        matmul(zeros({2, 1, 3}), zeros({4, 3, 3}));
      },
      ThrowsMessage<ShapeError>(HasSubstr("batch axes (2,) of a and (4,) of b")));
  EXPECT_THAT([&] { matmul(a, a, {.trans_b = true, .beta = 1}); },
              ThrowsMessage<ExecutionError>(HasSubstr("beta is not 0, but there is no output")));
  EXPECT_THAT([&] { matmul(a, a, {.trans_b = true, .alpha = std::complex<double>(0, 1)}); },
              ThrowsMessage<ExecutionError>(HasSubstr("alpha is complex")));
  const Tensor whole = zeros({2, 3}, DType::kInt32);
  EXPECT_THAT([&] { matmul(whole, whole, {.trans_b = true, .alpha = 0.5}); },
              ThrowsMessage<ExecutionError>(HasSubstr("needs a whole number")));
}

TEST(Matmul, RanksThatAreThreadsRunSideBySide) {
  const Tensor a = whole_numbers({65, 64}, 1), b = whole_numbers({64, 70}, 2);
  const auto expected = naive(a, b);
  std::vector<std::thread> ranks;
  std::atomic<int> good = 0;
  for (int r = 0; r < 4; ++r) {
    ranks.emplace_back([&] {
      backend::set_thread_count(1);
      for (int i = 0; i < 50; ++i) good += real_values(matmul(a, b)) == expected;
    });
  }
  for (std::thread& rank : ranks) rank.join();
  EXPECT_EQ(good, 200);
}

}  // namespace
}  // namespace cuop
