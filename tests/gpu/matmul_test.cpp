// Products of a GPU against those of the CPU.
#include "cuop/ops/matmul/matmul.h"

#include <gmock/gmock.h>

#include "cuop/backend/execution.h"
#include "cuop/memory/limited.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/matmul/padded_product_internal.h"
#include "cuop/ops/matmul/product_bytes.h"
#include "tests/gpu/gpu_values.h"

namespace cuop {
namespace {

/// Small whole numbers: every sum is exact in every dtype but bfloat16's and float16's long ones.
Tensor whole_numbers(const Shape& shape, uint32_t seed, DType dtype) {
  std::mt19937 generator(seed);
  std::uniform_int_distribution<int> numbers(-4, 4);
  return test::drawn(shape, dtype, [&] { return numbers(generator); });
}

class GpuMatmul : public GpuTest {};

TEST_F(GpuMatmul, EveryDtypeAgreesWithTheCpu) {
  for (const DType dtype : kFloatsAndComplex) {
    for (const auto& [m, k, n] : {std::array<int64_t, 3>{1, 1, 1},
                                  {1, 7, 53},
                                  {37, 7, 1},
                                  {37, 7, 53},
                                  {128, 16, 64},
                                  {131, 8, 257}}) {
      const Tensor a = whole_numbers({m, k}, 1, dtype), b = whole_numbers({k, n}, 2, dtype);
      const Tensor c = matmul(gpu(a), gpu(b));
      EXPECT_EQ(c.dtype(), dtype);
      EXPECT_EQ(c.device(), kGpu);
      EXPECT_EQ(host_values(c), host_values(matmul(a, b)))
          << dtype << ' ' << m << ' ' << k << ' ' << n;
    }
  }
}

TEST_F(GpuMatmul, TransposedViewsAreReadWhereTheyLie) {
  for (const DType dtype : kFloatsAndComplex) {
    const Tensor a = whole_numbers({7, 33}, 3, dtype), b = whole_numbers({29, 7}, 4, dtype);
    const Tensor expected = matmul(transpose(a), transpose(b));
    EXPECT_EQ(host_values(matmul(transpose(gpu(a)), transpose(gpu(b)))), host_values(expected))
        << dtype;
    MatmulOptions options;
    options.trans_a = options.trans_b = true;
    EXPECT_EQ(host_values(matmul(gpu(a), gpu(b), options)), host_values(expected)) << dtype;
  }
}

/// On both sides of where kernels of our own take over from cuBLAS.
TEST_F(GpuMatmul, AMatrixOfShortRowsTimesAVector) {
  for (const DType dtype : kFloatsAndComplex) {
    for (const int64_t k : {1, 3, 8, 9, 16, 31, 32, 64, 100}) {
      const Tensor x = whole_numbers({k}, 8, dtype), rows = whole_numbers({70, k}, 9, dtype);
      const Tensor columns = whole_numbers({k, 70}, 10, dtype);
      for (const bool is_turned : {false, true}) {
        const Tensor a = is_turned ? transpose(columns) : rows;
        const Tensor there = is_turned ? transpose(gpu(columns)) : gpu(rows);
        const std::string what = cat(dtype, ' ', k, " by ", a.strides());
        const auto expected = host_values(matmul(a, x));
        EXPECT_EQ(host_values(matmul(there, gpu(x))), expected) << what;
        EXPECT_EQ(host_values(matmul(gpu(x), transpose(there))), expected) << what;
        MatmulOptions options;
        options.alpha = 2;
        options.beta = 3;
        Tensor c = whole_numbers({70}, 11, dtype), c_there = gpu(c);
        matmul(a, x, options, &c);
        matmul(there, gpu(x), options, &c_there);
        EXPECT_EQ(host_values(c_there), host_values(c)) << what;
      }
    }
  }
}

TEST_F(GpuMatmul, BatchesBroadcast) {
  for (const DType dtype : {DType::kFloat32, DType::kComplex64, DType::kFloat16}) {
    const struct {
      Shape a, b;
    } shapes[] = {{{5, 9, 4}, {5, 4, 6}},
                  {{5, 9, 4}, {4, 6}},
                  {{9, 4}, {5, 4, 6}},
                  {{3, 1, 9, 4}, {5, 4, 6}},
                  {{2, 3, 9, 4}, {2, 3, 4, 6}},
                  {{4}, {5, 4, 6}},
                  {{5, 9, 4}, {4}},
                  {{4}, {4}}};
    for (const auto& [a_shape, b_shape] : shapes) {
      const Tensor a = whole_numbers(a_shape, 5, dtype), b = whole_numbers(b_shape, 6, dtype);
      EXPECT_EQ(host_values(matmul(gpu(a), gpu(b))), host_values(matmul(a, b)))
          << dtype << ' ' << a_shape << ' ' << b_shape;
    }
  }
}

TEST_F(GpuMatmul, ScalesAndAccumulatesIntoASlice) {
  for (const DType dtype : kFloatsAndComplex) {
    const Tensor a = whole_numbers({10, 4}, 7, dtype), b = whole_numbers({4, 12}, 8, dtype);
    const Tensor around = whole_numbers({30, 12}, 9, dtype);
    const Tensor expected = clone(around), on_gpu = gpu(around);
    MatmulOptions options;
    options.alpha = 2.0;
    options.beta = -3.0;
    const Tensor inner = slice(expected, 0, 10, 20), inner_gpu = slice(on_gpu, 0, 10, 20);
    matmul(a, b, options, &inner);
    matmul(gpu(a), gpu(b), options, &inner_gpu);
    EXPECT_EQ(host_values(on_gpu), host_values(expected))
        << dtype;  // the neighbours are guard zones
  }
}

/// Up to 2^24, which neither of the short formats holds.
TEST_F(GpuMatmul, ShortOperandsWithAFloat32ResultAreNotRounded) {
  std::mt19937 generator(12);
  std::uniform_int_distribution<int> numbers(-255, 255);
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    const auto drawn = [&](const Shape& shape) {
      return test::drawn(shape, dtype, [&] { return numbers(generator); });
    };
    for (const auto& [m, k, n] : {std::array<int64_t, 3>{1, 1, 1},
                                  {1, 7, 53},
                                  {37, 7, 1},
                                  {3, 0, 4},
                                  {0, 3, 4},
                                  {37, 33, 53},
                                  {64, 128, 32}}) {
      const Tensor a = drawn({m, k}), b = drawn({k, n});
      const MatmulOptions wide{.dtype = DType::kFloat32};
      const auto expected = host_values(matmul(cast(a, DType::kFloat64), cast(b, DType::kFloat64)));
      const Tensor c = matmul(gpu(a), gpu(b), wide);
      ASSERT_EQ(c.dtype(), DType::kFloat32);
      EXPECT_EQ(host_values(c), expected) << dtype << ' ' << m << ' ' << k << ' ' << n;
      const Tensor a_turned = gpu(contiguous(transpose(a))), b_turned = gpu(transpose(b));
      EXPECT_EQ(host_values(matmul(transpose(a_turned), transpose(contiguous(b_turned)), wide)),
                expected);
      const Tensor by_columns = full({n, m}, 2.0, DType::kFloat32, kGpu);
      const Tensor out = transpose(by_columns);
      matmul(gpu(a), gpu(b), {.beta = 3, .dtype = DType::kFloat32}, &out);
      auto added = expected;
      for (auto& value : added) value += 6;
      EXPECT_EQ(host_values(out), added);
    }
    const Tensor stack = drawn({2, 3, 9, 8}), right = drawn({3, 8, 6});
    EXPECT_EQ(host_values(matmul(gpu(stack), gpu(right), {.dtype = DType::kFloat32})),
              host_values(matmul(stack, right, {.dtype = DType::kFloat32})));
  }
}

/// Large enough to be worth copies, with rows of no whole 16 bytes. All sums are whole numbers that
/// both formats hold.
class GpuPaddedProduct : public GpuTest {
 protected:
  static constexpr int64_t kM = 1201, kK = 1203, kN = 1205;

  static Tensor drawn(const Shape& shape, uint32_t seed, DType dtype = DType::kBFloat16) {
    std::mt19937 generator(seed);
    std::uniform_int_distribution<int> numbers(-8, 8);  // a quarter of them counts
    return test::drawn(shape, dtype, [&] {
      const int number = numbers(generator);
      return std::abs(number) > 2 ? 0 : (number > 0) - (number < 0);
    });
  }
  static void expect_same(const Tensor& got, const Tensor& expected) {
    EXPECT_EQ(got.dtype(), expected.dtype());
    EXPECT_TRUE(host_values(got) == host_values(expected));
  }
};

TEST_F(GpuPaddedProduct, RowsAreFilledUpToWholeSteps) {
  kernels::Product p{gpu(drawn({kM, kK}, 1)), gpu(drawn({kK, kN}, 2)),
                     empty({kM, kN}, DType::kBFloat16, kGpu)};
  const Tensor b = p.b, c = p.c;
  kernels::ArrangedProduct arranged = kernels::arrange(p);
  kernels::pad_rows(arranged, p);
  EXPECT_EQ(p.a.shape(), Shape({kM, 1208}));
  EXPECT_EQ(p.b.shape(), Shape({1208, 1208}));
  EXPECT_EQ(p.c.shape(), Shape({kM, 1208}));
  EXPECT_EQ(arranged.target.data(), c.data());
  EXPECT_EQ(arranged.ldc, 1208);
  expect_same(slice(slice(p.b, 0, 0, kK), 1, 0, kN), b);
  for (const auto& [axis, from] : {std::pair(0, kK), std::pair(1, kN)}) {
    for (const auto& value : host_values(slice(p.b, axis, from, 1208))) ASSERT_EQ(value, 0.0);
  }
}

/// So plans count it; nothing where only time would be saved by it.
TEST_F(GpuPaddedProduct, TakesNoMoreMemoryThanIsCounted) {
  const Tensor a = gpu(drawn({kM, kK}, 1)), b = gpu(drawn({kK, kN}, 2));
  const Tensor c = empty({kM, kN}, DType::kFloat32, kGpu);
  const auto taken = [&](const backend::SpareMemory& spare) {
    const auto limited = memory::make_limited(kGpu, int64_t{1} << 30);
    const memory::ResourceScope memory(*limited);
    const backend::ExecutionScope scope(backend::with_spare(spare));
    matmul(a, b, {.dtype = DType::kFloat32}, &c);
    return limited->peak();
  };
  WorkFigures figures = work_figures(kGpu);
  const int64_t copies = kM * 1208 * 2 + 1208 * 1208 * 2 + kM * 1208 * 4;
  const auto counted = [&] {
    return product_bytes({kM, kN, kK}, DType::kBFloat16, DType::kFloat32, figures);
  };
  EXPECT_LE(taken({}), counted());
  EXPECT_GE(taken({}), copies);
  figures.spare = {.workspace = 512};
  EXPECT_LE(taken(figures.spare), counted());
  EXPECT_LT(counted(), copies + copies / 50);
  figures.spare = {.has_copies = false, .workspace = 0};
  EXPECT_EQ(taken(figures.spare), 0);
  EXPECT_EQ(counted(), 0);
}

TEST_F(GpuPaddedProduct, WhatFitsStaysWhereItLies) {
  const auto operands_of = [](int64_t m, int64_t k, int64_t n, DType dtype) {
    kernels::Product p{empty({m, k}, dtype, kGpu), empty({k, n}, dtype, kGpu),
                       empty({m, n}, dtype, kGpu)};
    const Tensor a = p.a, b = p.b, c = p.c;
    kernels::ArrangedProduct arranged = kernels::arrange(p);
    kernels::pad_rows(arranged, p);
    return std::array{p.a.data() == a.data(), p.b.data() == b.data(), p.c.data() == c.data()};
  };
  EXPECT_THAT(operands_of(1201, 1208, 1208, DType::kFloat16), testing::Each(true));
  EXPECT_THAT(operands_of(kM, kK, kN, DType::kFloat32), testing::Each(true));
  EXPECT_THAT(operands_of(301, 303, 305, DType::kFloat16), testing::Each(true));  // too small
  EXPECT_THAT(operands_of(1201, 1208, 1205, DType::kFloat16), testing::ElementsAre(1, 0, 0));
  EXPECT_THAT(operands_of(1201, 1203, 1208, DType::kFloat16), testing::ElementsAre(0, 0, 1));
}

TEST_F(GpuPaddedProduct, AgreesWithTheCpuInEveryLayout) {
  const Tensor a = drawn({kM, kK}, 1), b = drawn({kK, kN}, 2);
  const Tensor expected = matmul(a, b);
  const auto by_columns = [](const Tensor& t) { return transpose(gpu(contiguous(transpose(t)))); };
  expect_same(matmul(by_columns(a), by_columns(b)), expected);
  const Tensor turned = empty({kN, kM}, DType::kBFloat16, kGpu), out = transpose(turned);
  matmul(gpu(a), gpu(b), {}, &out);
  expect_same(out, expected);
  expect_same(matmul(gpu(a), gpu(b), {.dtype = DType::kFloat32}), cast(expected, DType::kFloat32));
}

TEST_F(GpuPaddedProduct, AddsToWhatWasThereAndLeavesTheRest) {
  const Tensor a = drawn({kM, kK}, 1), b = drawn({kK, kN}, 2);
  const Tensor around = drawn({kM + 2, kN + 2}, 3), on_gpu = gpu(around);
  const auto inner = [](const Tensor& t) { return slice(slice(t, 0, 1, kM + 1), 1, 1, kN + 1); };
  const MatmulOptions options{.alpha = 2.0, .beta = -3.0};
  const Tensor expected = inner(around), got = inner(on_gpu);
  matmul(a, b, options, &expected);
  matmul(gpu(a), gpu(b), options, &got);
  expect_same(on_gpu, around);
}

TEST_F(GpuPaddedProduct, BatchesBroadcast) {
  ASSERT_TRUE(kernels::pays_padding(901, 1403, 903, 2));
  const Tensor a = drawn({2, 901, 903}, 1), b = drawn({903, 1403}, 2);
  const Tensor stack = broadcast_to(gpu(b), {2, 903, 1403});
  const Tensor by_columns = swap_axes(gpu(contiguous(swap_axes(a, 1, 2))), 1, 2);
  expect_same(matmul(by_columns, stack), matmul(a, b));
}

TEST_F(GpuMatmul, AnEmptyInnerSizeGivesZeros) {
  const Tensor a = zeros({3, 0}, DType::kFloat32, kGpu), b = zeros({0, 5}, DType::kFloat32, kGpu);
  EXPECT_THAT(host_values(matmul(a, b)), testing::Each(std::complex<double>(0)));
}

TEST_F(GpuMatmul, Float32IsNotRoundedToFewerBits) {
  constexpr int64_t kSize = 512;
  std::mt19937 generator(10);
  std::uniform_real_distribution<float> random(0.5f, 1.0f);
  const Tensor a = empty({kSize, kSize}), b = empty({kSize, kSize});
  for (int64_t i = 0; i < kSize * kSize; ++i) {
    a.data<float>()[i] = random(generator);
    b.data<float>()[i] = random(generator);
  }
  const Tensor wide = matmul(cast(a, DType::kFloat64), cast(b, DType::kFloat64));
  const auto exact = host_values(wide), ours = host_values(matmul(gpu(a), gpu(b)));
  double worst = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    worst = std::max(worst, std::abs(ours[i] - exact[i]) / std::abs(exact[i]));
  }
  EXPECT_LT(worst, 5e-6);  // TF32 and bfloat16 are off by more than 1e-5 already in one product
  EXPECT_GT(worst, 0.0);
}

TEST_F(GpuMatmul, ServesManyStreams) {
  const Tensor a = whole_numbers({200, 200}, 11, DType::kFloat32);
  const auto expected = host_values(matmul(a, a));
  const Tensor on_gpu = gpu(a);
  backend::runtime(kGpu).synchronize();
  for (int round = 0; round < 5; ++round) {
    const backend::OwnedStream stream(kGpu);
    const StreamScope scope(stream.get());
    EXPECT_EQ(host_values(matmul(on_gpu, on_gpu)), expected);
  }
}

}  // namespace
}  // namespace cuop
