// Convolutions of a GPU against those of the CPU.
#include "cuop/ops/conv/conv.h"

#include <gmock/gmock.h>

#include <limits>
#include <thread>

#include "cuop/backend/cuda/cudnn.h"
#include "cuop/core/error.h"
#include "cuop/ops/index/view.h"
#include "tests/gpu/compare.h"
#include "tests/gpu/conv_values.h"
#include "tests/gpu/gpu_values.h"

namespace cuop {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

double tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
    case DType::kComplex128:
      return 1e-13;
    case DType::kFloat16:
      return 2e-3;
    case DType::kBFloat16:
      return 1.6e-2;
    default:
      return 1e-5;  // TF32 is off by more than 1e-4
  }
}

class GpuConv : public GpuTest {};

TEST_F(GpuConv, EveryDtypeAgreesWithTheCpu) {
  const struct {
    Shape x, w;
    Dims stride, padding, dilation;
    int64_t groups;
  } cases[] = {
      {{1, 1, 1, 1}, {1, 1, 1, 1}, {1}, {0}, {1}, 1},
      {{2, 3, 17, 13}, {5, 3, 3, 3}, {1}, {1}, {1}, 1},
      {{3, 8, 20, 20}, {16, 8, 5, 3}, {2, 1}, {2, 0}, {1}, 1},
      {{2, 6, 19, 23}, {6, 1, 3, 3}, {1}, {1}, {2}, 6},
      {{2, 8, 9, 9}, {4, 4, 1, 1}, {1}, {0}, {1}, 2},
      {{1, 64, 14, 14}, {32, 64, 3, 3}, {1}, {1}, {1}, 1},
  };
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16}) {
    uint32_t seed = 1;
    for (const auto& c : cases) {
      const Tensor x = random_values(c.x, ++seed, dtype), w = random_values(c.w, ++seed, dtype);
      const Tensor bias = random_values({c.w[0]}, ++seed, dtype);
      ConvOptions options;
      options.stride = c.stride;
      options.padding = c.padding;
      options.dilation = c.dilation;
      options.groups = c.groups;
      const Tensor gpu_bias = gpu(bias);
      expect_close(conv2d(gpu(x), gpu(w), nullptr, options), conv2d(x, w, nullptr, options),
                   tolerance_of(dtype));
      expect_close(conv2d(gpu(x), gpu(w), &gpu_bias, options), conv2d(x, w, &bias, options),
                   tolerance_of(dtype));
    }
  }
}

TEST_F(GpuConv, OneAndThreeAxes) {
  const Tensor x1 = random_values({2, 3, 50}, 1, DType::kFloat32);
  const Tensor w1 = random_values({4, 3, 7}, 2, DType::kFloat32);
  ConvOptions options;
  options.stride = {2};
  options.padding = {3};
  expect_close(conv1d(gpu(x1), gpu(w1), nullptr, options), conv1d(x1, w1, nullptr, options), 1e-5);
  const Tensor x3 = random_values({2, 3, 1, 9, 8}, 3, DType::kFloat32);
  const Tensor w3 = random_values({4, 3, 1, 3, 3}, 4, DType::kFloat32);
  options.stride = {4, 1, 1};
  options.padding = {1, 1, 1};
  expect_close(conv3d(gpu(x3), gpu(w3), nullptr, options), conv3d(x3, w3, nullptr, options), 1e-5);
}

TEST_F(GpuConv, WritesIntoWhatItIsGivenAndNothingElse) {
  const Tensor x = random_values({1, 2, 8, 8}, 1, DType::kFloat32);
  const Tensor w = random_values({3, 2, 3, 3}, 2, DType::kFloat32);
  const Tensor around = full({3, 3, 6, 6}, 7, DType::kFloat32, kGpu);
  const Tensor out = slice(around, 0, 1, 2);
  conv2d(gpu(x), gpu(w), nullptr, {}, &out);
  expect_close(out, conv2d(x, w), 1e-5);
  for (const int64_t guard : {0, 2}) {
    EXPECT_THAT(host_values(slice(around, 0, guard, guard + 1)),
                testing::Each(std::complex<double>(7)));
  }
}

struct RandomProblem {
  Tensor x, w, bias;
  ConvOptions options;

  RandomProblem(uint32_t seed, DType dtype) {
    std::mt19937 generator(seed);
    const auto pick = [&](int64_t least, int64_t most) {
      return std::uniform_int_distribution<int64_t>(least, most)(generator);
    };
    const int spatial = static_cast<int>(pick(1, 3));
    options.groups = pick(1, 3);
    Shape x_shape{pick(1, 4), pick(1, 9) * options.groups};
    Shape w_shape{pick(1, 9) * options.groups, x_shape[1] / options.groups};
    for (int i = 0; i < spatial; ++i) {
      options.stride.push_back(pick(1, 3));
      options.padding.push_back(pick(0, 4));
      options.dilation.push_back(pick(1, 3));
      w_shape.push_back(pick(1, 5));
      x_shape.push_back(pick(1, 15) + options.dilation.back() * (w_shape.back() - 1));
    }
    x = random_values(x_shape, seed + 1, dtype);
    w = random_values(w_shape, seed + 2, dtype);
    bias = random_values({w_shape[0]}, seed + 3, dtype);
  }

  Tensor run(const Tensor& image, const Tensor& weights, const Tensor* offset) const {
    constexpr Tensor (*kConv[])(const Tensor&, const Tensor&, const Tensor*, const ConvOptions&,
                                const Tensor*) = {conv1d, conv2d, conv3d};
    return kConv[image.ndim() - 3](image, weights, offset, options, nullptr);
  }
};

TEST_F(GpuConv, RandomProblemsAgreeWithTheCpu) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16}) {
    for (uint32_t seed = 0; seed < 24; ++seed) {
      SCOPED_TRACE(seed);
      RandomProblem p(seed * 10, dtype);
      if (seed % 2 != 0) p.options.activation = ConvActivation::kRelu;
      const Tensor bias = gpu(p.bias);
      expect_close(p.run(gpu(p.x), gpu(p.w), nullptr), p.run(p.x, p.w, nullptr),
                   tolerance_of(dtype));
      expect_close(p.run(gpu(p.x), gpu(p.w), &bias), p.run(p.x, p.w, &p.bias), tolerance_of(dtype));
    }
  }
}

TEST_F(GpuConv, EmptySumsAreTheBias) {
  const struct {
    Shape x, w;
    int64_t padding;
  } cases[] = {{{2, 0, 5, 4}, {3, 0, 2, 2}, 0},
               {{2, 1, 0, 4}, {3, 1, 1, 1}, 1},
               {{0, 2, 5, 4}, {3, 2, 2, 2}, 0}};
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16}) {
    for (const auto& c : cases) {
      const Tensor x = zeros(c.x, dtype), w = zeros(c.w, dtype);
      const Tensor bias = random_values({3}, 1, dtype), gpu_bias = gpu(bias);
      ConvOptions options;
      options.padding = {c.padding};
      for (const auto activation : {ConvActivation::kNone, ConvActivation::kRelu}) {
        options.activation = activation;
        EXPECT_EQ(host_values(conv2d(gpu(x), gpu(w), &gpu_bias, options)),
                  host_values(conv2d(x, w, &bias, options)));
        EXPECT_EQ(host_values(conv2d(gpu(x), gpu(w), nullptr, options)),
                  host_values(conv2d(x, w, nullptr, options)));
      }
    }
  }
}

TEST_F(GpuConv, TensorsMayStartAtAnyElement) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16}) {
    const Tensor x = random_values({2, 3, 9, 7}, 1, dtype),
                 w = random_values({4, 3, 3, 3}, 2, dtype);
    const Tensor bias = random_values({4}, 3, dtype), there = misaligned(bias);
    const Tensor around = full({2 * 4 * 7 * 5 + 2}, 7, dtype, kGpu);
    const Tensor out = reshape(slice(around, 0, 1, around.size() - 1), {2, 4, 7, 5});
    conv2d(misaligned(x), misaligned(w), &there, {}, &out);
    expect_close(out, conv2d(x, w, &bias), tolerance_of(dtype));
    const auto all = host_values(around);
    EXPECT_EQ(all.front(), std::complex<double>(7));
    EXPECT_EQ(all.back(), std::complex<double>(7));
  }
}

TEST_F(GpuConv, TheBiasJoinsBeforeTheOnlyRounding) {
  // 3 * 683 = 2049 is no float16 and would become 2048; 2049 + 1 is one.
  for (const int64_t channels : {1, 8}) {
    const Tensor x = full({1, channels, 4, 8}, 683, DType::kFloat16, kGpu);
    const Tensor w = zeros({channels, channels, 1, 3}, DType::kFloat16);
    for (int64_t c = 0; c < channels; ++c) fill(select(select(w, 0, c), 0, c), 1);
    const Tensor bias = full({channels}, 1, DType::kFloat16, kGpu);
    EXPECT_THAT(host_values(conv2d(x, gpu(w), &bias)), testing::Each(std::complex<double>(2050)));
  }
}

TEST_F(GpuConv, AddsToWhatTheOutputHolds) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16}) {
    const Tensor x = random_values({2, 4, 9, 7}, 1, dtype),
                 w = random_values({6, 2, 3, 3}, 2, dtype);
    const Tensor bias = random_values({6}, 3, dtype);
    const Tensor y = gpu(contiguous(broadcast_to(reshape(bias, {6, 1, 1}), {2, 6, 7, 5})));
    const Tensor there = gpu(x), weights = gpu(w);
    backend::cuda::ConvShape shape;
    shape.dtype = dtype;
    shape.batch = 2;
    shape.in_channels = 4;
    shape.out_channels = 6;
    shape.groups = 2;
    shape.in = {1, 9, 7};
    shape.kernel = {1, 3, 3};
    shape.out = {1, 7, 5};
    shape.adds_to_y = true;
    ASSERT_TRUE(backend::cuda::conv("conv2d", shape, "",
                                    {there.data(), weights.data(), nullptr, y.data()},
                                    current_stream(kGpu)));
    ConvOptions options;
    options.groups = 2;
    expect_close(y, conv2d(x, w, &bias, options), tolerance_of(dtype));
  }
}

TEST_F(GpuConv, Float32IsNotRoundedToFewerBits) {
  const Tensor x = random_values({2, 64, 28, 28}, 1, DType::kFloat64);
  const Tensor w = random_values({64, 64, 3, 3}, 2, DType::kFloat64);
  const Tensor narrow_x = cast(x, DType::kFloat32), narrow_w = cast(w, DType::kFloat32);
  const Tensor y = conv2d(gpu(narrow_x), gpu(narrow_w));
  const auto exact =
      host_values(conv2d(cast(narrow_x, DType::kFloat64), cast(narrow_w, DType::kFloat64)));
  const auto ours = host_values(y);
  double worst = 0;
  for (size_t i = 0; i < exact.size(); ++i) worst = std::max(worst, std::abs(ours[i] - exact[i]));
  EXPECT_LT(worst, 5e-5);  // 576 products of up to 1; TF32 errs by 1e-3 here
  EXPECT_GT(worst, 0.0);
}

TEST_F(GpuConv, AnInfinityReachesOnlyTheWindowsThatHoldIt) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat16}) {
    const Tensor x = random_values({1, 8, 24, 24}, 1, dtype),
                 w = random_values({8, 8, 3, 3}, 2, dtype);
    fill(slice(slice(x, 2, 12, 13), 3, 12, 13), std::numeric_limits<double>::infinity());
    const auto y = host_values(conv2d(gpu(x), gpu(w)));
    for (size_t i = 0; i < y.size(); ++i) {
      const size_t row = i / 22 % 22, column = i % 22;
      const bool holds = row >= 10 && row <= 12 && column >= 10 && column <= 12;
      EXPECT_EQ(std::isfinite(y[i].real()), !holds) << dtype << ' ' << row << ' ' << column;
    }
  }
}

/// What float16 answers where a window's sum is not finite or hardly so. Libraries differ there:
///   infinities, overflows  some of cuDNN's engines answer 0 for all below -65504 and are refused;
///   a
///                          last rounding that saturates would give 65504
///   BeyondAndBack          sums kept in float16 on the way would be infinite where 60000 is due
///   HalfwayToInfinity      the last rounding is to nearest even
///   InfiniteWeight         padding is multiplied like other zeros: NaN at the borders
/// Few channels, so that engines for them are offered.
struct NearInfinity {
  const char* name;
  std::vector<double> elements;  ///< of neighbouring channels of one pixel
  std::vector<double> weights;   ///< of those channels, in `taps` of the window's rows and columns
  int64_t taps = 3;
};

constexpr double kInfinity = std::numeric_limits<double>::infinity();

const NearInfinity kNearInfinity[] = {
    {"InfinityUp", {kInfinity}, {1}},
    {"InfinityDown", {kInfinity}, {-1}},
    {"NoNumber", {std::numeric_limits<double>::quiet_NaN()}, {1}},
    {"InfinitiesOfBothSigns", {kInfinity, kInfinity}, {1, -1}},
    {"OverflowUp", {60000}, {2}},
    {"OverflowDown", {60000}, {-2}},
    {"LargestUp", {65504}, {1}},
    {"LargestDown", {65504}, {-1}},
    {"BeyondAndBack", {60000, 60000, 60000}, {1, 1, -1}},
    {"HalfwayToInfinity", {65504, 16}, {1, 1}},
    {"InfiniteWeight", {1}, {kInfinity}, 1},
};

class GpuConvNearInfinity
    : public GpuTest,
      public ::testing::WithParamInterface<std::tuple<NearInfinity, int64_t, int64_t>> {};

TEST_P(GpuConvNearInfinity, AnswersAsTheCpu) {
  const auto& [given, channels, padding] = GetParam();
  const Tensor x = zeros({1, channels, 9, 9}, DType::kFloat16);
  const Tensor w = zeros({8, channels, 3, 3}, DType::kFloat16);
  for (size_t c = 0; c < given.elements.size(); ++c) {
    const auto channel = static_cast<int64_t>(c);
    fill(slice(slice(slice(x, 1, channel, channel + 1), 2, 4, 5), 3, 4, 5), given.elements[c]);
    const Tensor corner = slice(slice(w, 2, 0, given.taps), 3, 0, given.taps);
    fill(slice(corner, 1, channel, channel + 1), given.weights[c]);
  }
  ConvOptions options;
  options.padding = {padding};
  test::expect_same(conv2d(gpu(x), gpu(w), nullptr, options), conv2d(x, w, nullptr, options), 0.0,
                    given.name);
}

INSTANTIATE_TEST_SUITE_P(Cases, GpuConvNearInfinity,
                         ::testing::Combine(::testing::ValuesIn(kNearInfinity),
                                            ::testing::Values(8, 7), ::testing::Values(0, 1)),
                         [](const auto& each) {
                           return cat(std::get<0>(each.param).name, std::get<1>(each.param),
                                      "Channels", std::get<2>(each.param) == 0 ? "" : "Padded");
                         });

TEST_F(GpuConv, ThreadsRunOnStreamsOfTheirOwnAndRunsAgree) {
  const RandomProblem p(70, DType::kFloat32);
  const Tensor x = gpu(p.x), w = gpu(p.w), bias = gpu(p.bias);
  const auto expected = host_values(p.run(x, w, &bias));
  backend::runtime(kGpu).synchronize();
  std::vector<std::thread> threads;
  std::array<int, 4> equal{};
  for (size_t i = 0; i < equal.size(); ++i) {
    threads.emplace_back([&, i] {
      const backend::OwnedStream stream(kGpu);
      const StreamScope scope(stream.get());
      for (int round = 0; round < 8; ++round) {
        equal[i] += host_values(p.run(x, w, &bias)) == expected ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(equal, testing::Each(8));
}

/// The simulated cuDNN has no engine for kernels that are 29 wide.
TEST_F(GpuConv, WhereCudnnHasNoEngineOurKernelRuns) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16}) {
    const Tensor x = random_values({2, 4, 5, 40}, 1, dtype);
    const Tensor w = random_values({6, 2, 3, 29}, 2, dtype), bias = random_values({6}, 3, dtype);
    const Tensor x_there = gpu(x), w_there = gpu(w), bias_there = gpu(bias);
    ConvOptions options;
    options.groups = 2;
    const Tensor y = conv2d(x_there, w_there, nullptr, options);
    expect_close(y, conv2d(x, w, nullptr, options), tolerance_of(dtype));
    expect_close(conv2d(x_there, w_there, &bias_there, options), conv2d(x, w, &bias, options),
                 tolerance_of(dtype));

    const ConvVariant told = conv_variant(x_there, w_there, options);
    options.variant = ConvVariant::kCudnn;
    if (told == ConvVariant::kCudnn) {
      expect_close(conv2d(x_there, w_there, nullptr, options), y, tolerance_of(dtype));
    } else {
      EXPECT_EQ(told, ConvVariant::kDirect);
      EXPECT_THAT([&] { conv2d(x_there, w_there, &bias_there, options); },
                  ThrowsMessage<NotImplementedError>(HasSubstr("'auto' and 'direct' need none")));
    }
  }
}

/// Without cuDNN.
class GpuDirectConv : public GpuTest {};

TEST_F(GpuDirectConv, ServesEveryDtype) {
  for (const DType dtype :
       {DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64, DType::kUInt8, DType::kUInt16,
        DType::kUInt32, DType::kUInt64, DType::kComplex64, DType::kComplex128, DType::kFloat16,
        DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
    const bool is_whole = is_integer(dtype);
    for (uint32_t seed = 0; seed < 12; ++seed) {
      SCOPED_TRACE(seed);
      RandomProblem p(seed * 10 + 3, is_whole ? DType::kFloat64 : dtype);
      if (is_whole) {
        for (Tensor* t : {&p.x, &p.w, &p.bias}) *t = test::random_tensor(t->shape(), dtype, 1);
      }
      if (is_whole || is_complex(dtype)) {
        EXPECT_EQ(conv_variant(gpu(p.x), gpu(p.w), p.options), ConvVariant::kDirect);
      }
      if (seed % 2 != 0 && !is_complex(dtype)) p.options.activation = ConvActivation::kRelu;
      const Tensor wanted = p.run(p.x, p.w, &p.bias), bare = p.run(p.x, p.w, nullptr);
      p.options.variant = ConvVariant::kDirect;
      const Tensor bias = gpu(p.bias);
      const double tolerance = is_whole ? 0 : tolerance_of(dtype);
      expect_close(p.run(gpu(p.x), gpu(p.w), &bias), wanted, tolerance);
      expect_close(p.run(gpu(p.x), gpu(p.w), nullptr), bare, tolerance);
    }
  }
}

TEST_F(GpuDirectConv, SumsOfNothingAreTheBias) {
  const Tensor x = zeros({2, 0, 5, 4}, DType::kInt32), w = zeros({3, 0, 2, 2}, DType::kInt32);
  const Tensor bias = test::random_tensor({3}, DType::kInt32, 1), there = gpu(bias);
  test::expect_same(conv2d(gpu(x), gpu(w), &there), conv2d(x, w, &bias), 0, "no channels");
}

TEST_F(GpuDirectConv, AVariantOfTheCpuIsRefused) {
  const Tensor f = zeros({1, 1, 4, 4}, DType::kFloat32, kGpu);
  ConvOptions options;
  options.variant = ConvVariant::kGemm;
  EXPECT_THAT([&] { conv2d(f, f, nullptr, options); },
              ThrowsMessage<ExecutionError>(HasSubstr("which has 'cudnn', 'split' and 'direct'")));
}

}  // namespace
}  // namespace cuop
