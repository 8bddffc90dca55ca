#include "cuop/ops/conv/conv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <random>
#include <thread>

#include "cuop/backend/cpu/dnn.h"
#include "cuop/backend/cpu/isa.h"
#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/error.h"
#include "cuop/ops/conv/conv_kernels.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/index/view.h"
#include "tests/sanitized.h"
#include "tests/values.h"

namespace cuop {
namespace {

using test::values;

/// Small whole numbers: every variant must answer the same bits.
Tensor whole_pixels(const Shape& shape, uint32_t seed) {
  std::mt19937 generator(seed);
  std::uniform_int_distribution<int> pixels(-3, 3);
  Tensor t = empty(shape, DType::kFloat32);
  for (int64_t i = 0; i < t.size(); ++i) t.data<float>()[i] = static_cast<float>(pixels(generator));
  return t;
}

std::vector<ConvVariant> runnable() {
  std::vector<ConvVariant> variants{ConvVariant::kGemm, ConvVariant::kDirect};
  if (backend::dnn::info().is_available) variants.push_back(ConvVariant::kOneDnn);
  return variants;
}

TEST(Conv, VariantsAndThreadCountsAgree) {
  const Tensor x = whole_pixels({2, 12, 23, 29}, 1), w = whole_pixels({18, 6, 3, 5}, 2);
  const Tensor bias = whole_pixels({18}, 3);
  ConvOptions options{.stride = {2, 1}, .padding = {2}, .dilation = {1, 2}, .groups = 2};
  options.variant = ConvVariant::kDirect;
  const auto expected = values<float>(conv2d(x, w, &bias, options));
  for (const ConvVariant variant : runnable()) {
    options.variant = variant;
    for (const int threads : {1, 2, 5}) {
      backend::set_thread_count(threads);
      EXPECT_EQ(values<float>(conv2d(x, w, &bias, options)), expected)
          << name(variant) << ' ' << threads;
    }
  }
  backend::set_thread_count(0);
}

TEST(Conv, LongRowsAreComputedInPieces) {
  // Small whole numbers: no sum is rounded.
  const Tensor x = whole_pixels({2, 1, 20011}, 1), w = whole_pixels({5, 1, 6001}, 2);
  for (const int64_t stride : {1, 3}) {
    if (test::kIsSanitized && stride == 1) continue;
    ConvOptions options{.stride = {stride}, .variant = ConvVariant::kGemm};
    const auto expected = values<float>(conv1d(x, w, nullptr, options));
    options.variant = ConvVariant::kDirect;
    for (const int threads : {1, 3}) {
      backend::set_thread_count(threads);
      EXPECT_EQ(values<float>(conv1d(x, w, nullptr, options)), expected)
          << stride << ' ' << threads;
    }
  }
  backend::set_thread_count(0);
}

TEST(Conv, RanksThatAreThreadsRunSideBySide) {
  const Tensor x = whole_pixels({1, 16, 14, 14}, 1), w = whole_pixels({16, 16, 3, 3}, 2);
  for (const ConvVariant variant : runnable()) {
    const ConvOptions options{.padding = {1}, .variant = variant};
    const auto expected = values<float>(conv2d(x, w, nullptr, options));
    std::atomic<int> good = 0;
    std::vector<std::thread> ranks;
    for (int r = 0; r < 4; ++r) {
      ranks.emplace_back([&] {
        backend::set_thread_count(1);
        for (int i = 0; i < 20; ++i)
          good += values<float>(conv2d(x, w, nullptr, options)) == expected;
      });
    }
    for (std::thread& rank : ranks) rank.join();
    EXPECT_EQ(good, 80) << name(variant);
  }
}

TEST(Conv, KeptWeightsServeOtherSizesToo) {
  const Tensor w = whole_pixels({32, 16, 3, 3}, 2);
  for (const ConvVariant variant : runnable()) {
    ConvWeightCache cache;
    for (const int64_t size : {14, 9, 14}) {
      const Tensor x = whole_pixels({1, 16, size, size}, 1);
      ConvOptions options{.variant = variant};
      const auto expected = values<float>(conv2d(x, w, nullptr, options));
      options.cache = &cache;
      EXPECT_EQ(values<float>(conv2d(x, w, nullptr, options)), expected) << name(variant) << size;
    }
  }
}

TEST(Conv, PreparedPrimitivesAreRebuiltAfterRelease) {
  if (!backend::dnn::info().is_available) GTEST_SKIP() << backend::dnn::info().reason;
  const Tensor x = whole_pixels({1, 16, 9, 9}, 1), w = whole_pixels({16, 16, 3, 3}, 2);
  const ConvOptions options{.variant = ConvVariant::kOneDnn};
  const auto before = values<float>(conv2d(x, w, nullptr, options));
  EXPECT_GT(backend::dnn::release(), 0);
  EXPECT_EQ(values<float>(conv2d(x, w, nullptr, options)), before);
}

/// 1 for NaN, else 0.
std::vector<bool> nan_places(const Tensor& y) {
  std::vector<bool> places;
  for (const float value : values<float>(cast(y, DType::kFloat32)))
    places.push_back(std::isnan(value));
  return places;
}

TEST(Conv, PaddingIsMultipliedByInfiniteWeightsToo) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const ConvVariant variant : runnable()) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
      for (const double weight : {kInfinity, -kInfinity, std::nan("")}) {
        for (const int64_t padding : {0, 1, 2, 4}) {
          for (const int64_t stride : {1, 2}) {
            const Tensor x = ones({2, 4, 5, 5}, dtype), w = zeros({6, 2, 3, 3}, dtype);
            // One corner of the windows of one channel: so many of its rows and columns lie
            // outside.
            fill(slice(slice(slice(slice(w, 0, 4, 5), 1, 1, 2), 2, 0, 1), 3, 0, 1), weight);
            const ConvOptions options{.stride = {stride},
                                      .padding = {padding},
                                      .groups = 2,
                                      .variant = variant,
                                      .activation = ConvActivation::kRelu};
            const Tensor y = conv2d(x, w, nullptr, options);
            std::vector<bool> expected;
            for (int64_t at = 0; at < y.size(); ++at) {
              const int64_t column = at % y.shape(3) * stride,
                            row = at / y.shape(3) % y.shape(2) * stride;
              const bool is_outside =
                  std::min(row, column) < padding || std::max(row, column) >= padding + x.shape(3);
              const bool is_there = at / (y.shape(2) * y.shape(3)) % 6 == 4;
              expected.push_back(is_there && (is_outside || std::isnan(weight)));
            }
            EXPECT_EQ(nan_places(y), expected)
                << name(variant) << dtype << weight << padding << stride;
          }
        }
      }
    }
  }
}

TEST(Conv, IntegersWrapInTheirDtype) {
  const Tensor x = from_values<double>({1, 1, 1, 3}, {100, 100, -128});
  const Tensor w = from_values<double>({1, 1, 1, 2}, {2, 1}), bias = from_values<double>({1}, {7});
  const auto as = [](const Tensor& t) { return cast(t, DType::kInt8); };
  const Tensor b = as(bias), y = conv2d(as(x), as(w), &b);
  EXPECT_EQ(y.dtype(), DType::kInt8);
  EXPECT_EQ(y.data<int8_t>()[0], 307 - 256);
  EXPECT_EQ(y.data<int8_t>()[1], 79);
}

TEST(Conv, ComplexNumbersAreNotConjugated) {
  using Complex128 = std::complex<double>;
  const Complex128 p(1, 2), q(-3, 1), r(0.5, -4), s(2, 2);
  const Tensor x = from_values<Complex128>({1, 1, 2}, {p, q}),
               w = from_values<Complex128>({1, 1, 2}, {r, s});
  const Tensor bias = from_values<Complex128>({1}, {Complex128(0, 1)});
  EXPECT_EQ(conv1d(x, w, &bias).data<Complex128>()[0], p * r + q * s + Complex128(0, 1));
}

template <class T>
std::vector<T> run_direct(isa::Level level) {
  constexpr int64_t kWidth = 301;
  std::vector<T> packed(2 * kWidth + kernels::kDirectSlack), weights(8), out(4 * kWidth);
  for (size_t i = 0; i < packed.size(); ++i) packed[i] = static_cast<T>(i * i * 2654435761u >> 3);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<T>(i * 40503u + 11);
  const int64_t offsets[] = {0, kWidth};
  kernels::DirectCall<T> call{4, 2, kWidth, packed.data(), offsets, {}, {}, {}};
  for (size_t r = 0; r < 4; ++r) {
    call.weights[r] = weights.data() + 2 * r;
    call.bias[r] = static_cast<T>(r);
    call.out[r] = out.data() + r * kWidth;
  }
  std::get<kernels::DirectKernel<T>>(
      isa::choose(level, []<class L>(L) -> const kernels::DirectKernels& {
        return kernels::direct_kernels<L>();
      }))(call);
  return out;
}

TEST(ConvDirect, IntegersGiveTheSameBitsAtEveryInstructionSet) {
  for (const isa::Level level : {isa::Level::kV3, isa::Level::kV4}) {
    if (!isa::is_supported(level)) continue;
    EXPECT_EQ(run_direct<uint8_t>(level), run_direct<uint8_t>(isa::Level::kBaseline));
    EXPECT_EQ(run_direct<uint16_t>(level), run_direct<uint16_t>(isa::Level::kBaseline));
    EXPECT_EQ(run_direct<uint64_t>(level), run_direct<uint64_t>(isa::Level::kBaseline));
  }
}

TEST(Conv, SizesThatOverflowAreRefusedAndLongStridesAreNot) {
  const Tensor x = ones({1, 1, 4, 4}), w = ones({1, 1, 2, 2});
  const int64_t far = int64_t{1} << 62;
  EXPECT_EQ(values<float>(conv2d(x, w, nullptr, {.stride = {far}})), std::vector<float>{4});
  EXPECT_THROW(conv2d(x, w, nullptr, {.padding = {far}}), ShapeError);
  EXPECT_THROW(conv2d(x, w, nullptr, {.padding = {far - 1}}), ShapeError);
}

TEST(Conv, OutputShapeIsKnownBeforehand) {
  const ConvOptions options{.stride = {2}, .padding = {1}};
  EXPECT_EQ(conv_output_shape("conv2d", {4, 3, 224, 224}, {64, 3, 7, 7}, options),
            (Shape{4, 64, 110, 110}));
  EXPECT_THROW(conv_output_shape("conv2d", {4, 3, 2, 2}, {64, 3, 7, 7}, options), ShapeError);
}

TEST(Conv, RectifiesAsReluDoes) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Tensor x = whole_pixels({2, 4, 9, 11}, 1), w = whole_pixels({6, 4, 3, 3}, 2);
  x.data<float>()[30] = std::numeric_limits<float>::quiet_NaN();
  x.data<float>()[500] = kInfinity;
  x.data<float>()[700] = -kInfinity;
  const Tensor bias = whole_pixels({6}, 3);
  for (const ConvVariant variant : runnable()) {
    ConvOptions options{.variant = variant};
    for (const Tensor* offset : std::initializer_list<const Tensor*>{nullptr, &bias}) {
      options.activation = ConvActivation::kNone;
      const auto expected = values<float>(relu(conv2d(x, w, offset, options)));
      options.activation = ConvActivation::kRelu;
      const auto y = values<float>(conv2d(x, w, offset, options));
      int not_numbers = 0;
      for (size_t i = 0; i < y.size(); ++i) {
        not_numbers += std::isnan(y[i]) ? 1 : 0;
        EXPECT_TRUE(y[i] == expected[i] || (std::isnan(y[i]) && std::isnan(expected[i]))) << i;
      }
      EXPECT_GE(not_numbers, 9) << name(variant);
      EXPECT_EQ(std::count(y.begin(), y.end(), -kInfinity), 0) << name(variant);
      EXPECT_GT(std::count(y.begin(), y.end(), kInfinity), 0) << name(variant);
    }
  }
}

TEST(Conv, ActivationNamesRoundTripAndOthersAreRefused) {
  for (const ConvActivation a : {ConvActivation::kNone, ConvActivation::kRelu}) {
    EXPECT_EQ(parse_conv_activation(name(a)), a);
  }
  EXPECT_THAT([] { parse_conv_activation("gelu"); },
              testing::ThrowsMessage<ExecutionError>("conv: activation 'gelu' is unknown; known "
                                                     "are none, relu"));
}

TEST(Conv, VariantNamesRoundTrip) {
  for (const ConvVariant v : {ConvVariant::kAuto, ConvVariant::kOneDnn, ConvVariant::kGemm,
                              ConvVariant::kDirect, ConvVariant::kCudnn, ConvVariant::kSplit}) {
    EXPECT_EQ(parse_conv_variant(name(v)), v);
  }
}

TEST(DnnInfo, NamesTheLibraryOrTheReason) {
  EXPECT_NE(backend::dnn::info().is_available, backend::dnn::info().version.empty());
  EXPECT_NE(backend::dnn::info().is_available, !backend::dnn::info().reason.empty());
}

}  // namespace
}  // namespace cuop
